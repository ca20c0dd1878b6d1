// node site.mjs PYTHON CHROMIUM [PAGE...]: every page of build/site/html, or those named, at desktop and telephone width, light and dark;
// exit status 1 if something is wrong.
import assert from 'node:assert/strict';
import {readdirSync, mkdirSync, existsSync} from 'node:fs';
import {createRequire} from 'node:module';
import {resolve} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';

const [, executablePath, ...chosen] = process.argv.slice(2);
const build = resolve('build/browser'), site = resolve('build/site/html');
const {chromium} = createRequire(`${build}/package.json`)('playwright-core');
const pages = chosen.length ? chosen : readdirSync(site, {recursive: true}).filter(name => name.endsWith('.html') && !name.startsWith('_static'));
assert.ok(pages.length, 'make site first');
const pictured = ['docs/index.html', 'figures/README.html', 'figures/CLAIMS.html', 'notebooks/peva22/fig2_synthetic.html',
  'notebooks/www25/fig4_noisy_signals.html', 'docs/recrawl/estimators.html', 'docs/lesson.html', 'docs/symbols.html', 'docs/reference.html'];
mkdirSync(`${build}/site`, {recursive: true});

const complaints = new Set(), anchors = new Map(), links = [];
const browser = await chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync']});

/** What is wrong with the page that is open, whatever its links lead to. */
function faults(machine) {
  const wrong = [...document.images].filter(i => !i.alt.trim()).map(i => `no alternative text: ${i.src}`);
  if (document.body.innerText.includes(machine)) wrong.push(`names the folder it was made in, ${machine}`);
  // furo cuts off what is too wide instead of scrolling; what lies in a box that scrolls by itself is well
  const scrolls = element => /auto|scroll/.test(getComputedStyle(element).overflowX);
  for (const element of document.querySelectorAll('article *')) {
    if (element.getBoundingClientRect().right <= innerWidth + 1) continue;
    let box = element;
    while (box.tagName !== 'ARTICLE' && !scrolls(box)) box = box.parentElement;
    if (box.tagName === 'ARTICLE' || box.getBoundingClientRect().right > innerWidth + 1) {
      wrong.push(`too wide: ${element.tagName} ${element.className}: ${element.textContent.slice(0, 40)}`);
      break;
    }
  }
  return wrong.concat([...document.images].filter(i => i.complete && !i.naturalWidth).map(i => `no image: ${i.src}`));
}

async function open(colorScheme, width, some = pages) {
  const context = await browser.newContext({viewport: {width, height: 844}, colorScheme});
  const page = await context.newPage();
  let name;
  const complain = what => complaints.add(`${name}, ${colorScheme}, ${width} px: ${what}`);
  page.on('console', message => message.type() === 'error' && complain(message.text()));
  page.on('pageerror', error => complain(String(error)));
  page.on('request', request => /^(file|data|blob):/.test(request.url()) || complain(`request of ${request.url()}`));
  page.on('requestfailed', request => complain(`cannot read ${request.url()}`));
  for (name of some) {
    await page.goto(pathToFileURL(`${site}/${name}`).href);
    await page.evaluate(() => Promise.all([window.MathJax?.startup?.promise,
      ...[...document.images].map(image => { image.loading = 'eager'; return image.decode().catch(() => {}); })]));
    for (const fault of await page.evaluate(faults, resolve('.'))) complain(fault);
    if (!anchors.has(name)) {
      anchors.set(name, new Set(await page.evaluate(() => [...document.querySelectorAll('[id]')].map(element => element.id))));
      for (const href of await page.evaluate(() => [...document.links].map(link => link.href))) links.push([name, href]);
    }
    if (pictured.includes(name)) {
      await page.screenshot({path: `${build}/site/${name.replace(/\W+/g, '-')}-${width}-${colorScheme}.png`});
    }
  }
  await context.close();
}

/** Finds the pages with some words. */
async function search() {
  const page = await browser.newPage();
  for (const [words, place] of [['momentum', /estimators|formulas|peva22/], ['lemma 4', /aaai20\/lemma4/]]) {
    await page.goto(`${pathToFileURL(`${site}/search.html`).href}?q=${words}`);
    const found = page.locator('#search-results li a');
    await found.first().waitFor();
    const first = await found.evaluateAll(links => links.slice(0, 8).map(link => link.href).join(' '));
    assert.match(first, place, `the first results for ${words} have the page`);
  }
}

/** The sliders of the lesson: the numbers of its text, by mouse and by key, on the screen of a lecture room. */
async function lesson() {
  const page = await browser.newPage({viewport: {width: 1280, height: 720}});
  page.on('pageerror', error => complaints.add(String(error)));
  await page.goto(pathToFileURL(`${site}/docs/lesson.html`).href);
  for (const [id, values] of [
    ['split', {9: 'mean 0.500.', 5: 'mean 0.595.', 6: 'mean 0.600.', 0: 'mean 0.455.', 10: 'mean 0.263.'}],
    ['estimators', {5: 'of the MLE, if finite, 1.001;', 20: '1.048;', 100: '1.009;', 400: 'Mean of naive 0.632, of the MLE, if finite, 1.002;'}],
  ]) {
    const box = page.locator(`#lesson-${id}`), input = box.locator('input');
    for (const [value, words] of Object.entries(values)) {
      await input.fill(value);
      assert.ok((await box.innerText()).includes(words), `${id} at ${value}: ${words} in ${await box.innerText()}`);
      assert.doesNotMatch(await box.innerHTML(), /NaN|Infinity|undefined/);
      await box.screenshot({path: `${build}/site/lesson-${id}-${value}.png`});
    }
    const before = await box.innerText();
    await input.focus();
    await page.keyboard.press('ArrowLeft');
    assert.notEqual(await box.innerText(), before, `${id}: a key moves the slider`);
    const {height} = await box.boundingBox();
    assert.ok(height <= 620, `${id}: ${height} px, too high for 720 with a browser's bars`);
    const size = await box.locator('svg text').first().evaluate(text => text.getBoundingClientRect().height);
    assert.ok(size >= 20, `${id}: letters of ${size} px are too small for the last row`);
  }
  await page.close();
}

try {
  await open('light', 1280);
  await open('dark', 390);
  await open('dark', 1280, pictured);
  await open('light', 390, pictured);
  let followed = 0;
  for (const [from, href] of links) {
    const url = new URL(href);
    if (url.protocol !== 'file:') continue;
    const path = fileURLToPath(new URL(url.pathname, 'file:')), name = path.slice(site.length + 1), anchor = decodeURIComponent(url.hash.slice(1));
    if (!path.startsWith(site) || !existsSync(path)) complaints.add(`${from}: no such file: ${href}`);
    else if (anchor && anchors.has(name) && !anchors.get(name).has(anchor)) complaints.add(`${from}: no such place: ${href}`);
    followed++;
  }
  assert.equal(complaints.size, 0, `${complaints.size} faults`);
  await search();
  await lesson();
  console.log(`test-site: passed, ${pages.length} pages, ${followed} links`);
} catch (error) {
  console.error(`test-site: FAILED: ${error.message}`, [...complaints].slice(0, 50));
  process.exitCode = 1;
} finally {
  await browser.close();
}
