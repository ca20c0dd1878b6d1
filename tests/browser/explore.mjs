// node explore.mjs PYTHON CHROMIUM: runs the notebooks with sliders in JupyterLab and moves
// everything in them; exit status 1 if something is wrong.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {randomBytes} from 'node:crypto';
import {copyFileSync, mkdirSync, openSync, rmSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {createServer} from 'node:net';
import {availableParallelism, loadavg} from 'node:os';
import {resolve} from 'node:path';

const [python, executablePath] = process.argv.slice(2);
const build = resolve('build/browser');
const {chromium} = createRequire(`${build}/package.json`)('playwright-core');
const target = 300; // ms from a key press to the new picture, the median

const port = await new Promise(done => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const {port} = server.address();
    server.close(() => done(port));
  });
});
const token = randomBytes(16).toString('hex');
const NOTEBOOKS = [['lesson', 2], ['explore', 14]]; // name, number of sliders
const height = 720; // of a projector's picture; JupyterLab takes 140 of it
// copies of the notebooks, and nobody's settings
const home = `${build}/home`;
rmSync(home, {recursive: true, force: true});
mkdirSync(`${home}/notebooks`, {recursive: true});
for (const [name] of NOTEBOOKS) copyFileSync(`notebooks/${name}.ipynb`, `${home}/notebooks/${name}.ipynb`);
const settings = `${home}/JUPYTERLAB_SETTINGS_DIR/@jupyterlab/apputils-extension`;
mkdirSync(settings, {recursive: true});
writeFileSync(`${settings}/notification.jupyterlab-settings`, '{"fetchNews": "false", "checkForUpdates": false}');
const notebooks = `${home}/JUPYTERLAB_SETTINGS_DIR/@jupyterlab/notebook-extension`;
mkdirSync(notebooks, {recursive: true});
writeFileSync(`${notebooks}/tracker.jupyterlab-settings`, '{"windowingMode": "none"}'); // all cells are in the page
const log = openSync(`${build}/jupyterlab.log`, 'w');
const folders = ['JUPYTER_CONFIG_DIR', 'JUPYTER_RUNTIME_DIR', 'JUPYTERLAB_SETTINGS_DIR', 'JUPYTERLAB_WORKSPACES_DIR', 'IPYTHONDIR'];
const lab = spawn(python, ['-m', 'jupyterlab', '--allow-root', '--no-browser', '--expose-app-in-browser', '--ip=127.0.0.1', `--port=${port}`,
  '--ServerApp.port_retries=0', `--IdentityProvider.token=${token}`, `--ServerApp.root_dir=${home}/notebooks`,
  '--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate'],
{stdio: ['ignore', log, log], env: {...process.env, ...Object.fromEntries(folders.map(name => [name, `${home}/${name}`]))}});
let ended = false;
lab.on('exit', () => { ended = true; });

let browser;
const times = [], complaints = [];
let page;

/** The picture of a part of the notebook, once it has stood still. */
async function picture(part) {
  return page.evaluate(async part => {
    const box = document.querySelectorAll('.widget-interact')[part];
    const {kernel} = window.jupyterapp.shell.currentWidget.sessionContext.session;
    let before, now = '';
    do {
      before = now;
      do await new Promise(done => setTimeout(done, 150)); while (kernel.status !== 'idle');
      now = box.querySelector('img')?.src ?? '';
    } while (now !== before || !now);
    return now;
  }, part);
}

/** Do something with the keyboard, and measure until the next picture is there. */
async function redraw(part, act) {
  const seen = page.evaluate(part => new Promise(done => {
    const box = document.querySelectorAll('.widget-interact')[part], before = box.querySelector('img').src;
    let began;
    document.addEventListener('keydown', () => { began = performance.now(); }, {capture: true, once: true});
    const observer = new MutationObserver(() => {
      const image = box.querySelector('img');
      if (!image || image.src === before) return;
      observer.disconnect();
      image.decode().then(() => done(performance.now() - began));
    });
    observer.observe(box, {subtree: true, childList: true, attributes: true});
    setTimeout(() => done(null), 3000);
    window.ready = true;
  }), part);
  await page.waitForFunction(() => window.ready);
  await page.evaluate(() => { window.ready = false; });
  await act();
  const time = await seen;
  if (time !== null) times.push(time);
  return time;
}

/** Move every slider of a part: one step, to both ends, and back, where the picture must be what it was. */
async function sliders(part) {
  const box = page.locator('.widget-interact').nth(part), count = await box.locator('.widget-slider').count();
  for (let i = 0; i < count; i++) {
    const slider = box.locator('.widget-slider').nth(i);
    const handle = slider.locator('.noUi-handle'), readout = slider.locator('.widget-readout');
    const name = await slider.locator('.widget-label').innerText();
    const value = await readout.innerText(), before = await picture(part);
    await handle.focus();
    assert.notEqual(await redraw(part, () => page.keyboard.press('ArrowRight')), null, `${name}: a step redraws`);
    assert.notEqual(await picture(part), before, `${name}: a step changes the picture`);
    for (const key of ['End', 'Home']) {
      await redraw(part, () => page.keyboard.press(key));
      await picture(part);
      console.log(`  ${name}: ${await readout.innerText()}`);
    }
    // as fast as the keyboard can: only the last picture counts
    for (let press = 0; press < 500 && await readout.innerText() !== value; press++) await page.keyboard.press('ArrowRight');
    assert.equal(await readout.innerText(), value, `${name} is back`);
    assert.equal(await picture(part), before, `${name}: the picture is what it was`);
  }
  return count;
}

/** Choose each option of a part's list in turn: every one has a picture of its own. */
async function options(part) {
  const list = page.locator('.widget-interact').nth(part).locator('select'), pictures = new Set();
  if (!await list.count()) return;
  const names = await list.locator('option').allInnerTexts();
  for (const name of names) {
    await list.selectOption(name);
    pictures.add(await picture(part));
  }
  assert.equal(pictures.size, names.length, 'each option has a picture of its own');
  if (await list.evaluate(element => element.multiple)) await list.selectOption(names); // for the sliders of each
}

async function run() {
  for (let tries = 0; ; tries++) {
    assert.ok(!ended && tries < 240, `JupyterLab did not start, see ${build}/jupyterlab.log`);
    if (await fetch(`http://127.0.0.1:${port}/api/status?token=${token}`).then(r => r.ok, () => false)) break;
    await new Promise(done => setTimeout(done, 250));
  }
  browser = await chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync']});
  for (const each of NOTEBOOKS) await notebook(...each);
  times.sort((a, b) => a - b);
  const median = times[times.length >> 1];
  const [load] = loadavg(), cores = availableParallelism();
  console.log(`${times.length} redraws, from key press to picture: median ${median.toFixed(0)} ms, 90% within `
    + `${times[Math.floor(0.9 * times.length)].toFixed(0)} ms; target: median below ${target} ms; load ${load.toFixed(1)} on ${cores} cores`);
  if (load > cores) console.log('the machine is busy: the time does not count');
  else assert.ok(median < target, 'the median redraw is within its target');
}

/** One notebook: runs it as people do, and moves every slider. */
async function notebook(name, sliderCount) {
  page = await browser.newPage({viewport: {width: 1280, height}});
  page.on('console', message => message.type() === 'error' && complaints.push(`${message.text()} ${message.location().url}`));
  page.on('pageerror', error => complaints.push(String(error)));
  await page.goto(`http://127.0.0.1:${port}/lab/workspaces/${name}/tree/${name}.ipynb?token=${token}`);
  const idle = () => page.waitForFunction(() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle',
    undefined, {timeout: 120000});
  await idle();
  for (const time of ['first', 'second', 'restarted']) { // as people do
    if (time === 'restarted') await page.evaluate(() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart());
    await idle();
    await page.evaluate(() => window.jupyterapp.commands.execute('notebook:run-all-cells'));
    await idle();
    const errors = await page.evaluate(() => window.jupyterapp.shell.currentWidget.content.model.toJSON().cells
      .flatMap(cell => cell.outputs ?? []).filter(o => o.output_type === 'error' || o.name === 'stderr').map(o => JSON.stringify(o)));
    assert.deepEqual(errors, [], `no errors in the ${time} run`);
  }
  let moved = 0;
  for (const part of [0, 1]) {
    await page.locator('.widget-interact').nth(part).scrollIntoViewIfNeeded();
    await picture(part);
    await options(part);
    moved += await sliders(part);
    await page.locator('.widget-interact').nth(part).screenshot({path: `${build}/${name}-${part}.png`});
    const box = await page.locator('.widget-interact').nth(part).boundingBox();
    assert.ok(box.height <= height - 140, `${name}, part ${part}: ${box.height} px do not fit on a projector`);
  }
  assert.equal(moved, sliderCount, 'all sliders of both parts were moved');
  assert.deepEqual(complaints, [], 'no errors in the browser console');
  await page.close();
}

try {
  await run();
  console.log('test-browser: passed');
} catch (error) {
  console.error(`test-browser: FAILED: ${error.message}`, complaints);
  await page?.screenshot({path: `${build}/failed.png`}).catch(() => {});
  process.exitCode = 1;
} finally {
  await browser?.close();
  lab.kill();
}
