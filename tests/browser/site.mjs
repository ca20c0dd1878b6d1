// node site.mjs PYTHON CHROMIUM [PAGE...]: every page of build/site/html, or those named, in three widths, and
// docs/lesson.html; exit status 1 if something is wrong.
import assert from 'node:assert/strict';
import {copyFileSync, existsSync, mkdirSync, readdirSync} from 'node:fs';
import {createRequire} from 'node:module';
import {resolve} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';

const [, executablePath, ...chosen] = process.argv.slice(2);
const build = resolve('build/browser'), site = resolve('build/site/html');
const {chromium} = createRequire(`${build}/package.json`)('playwright-core');
const WIDTHS = [390, 768, 1280]; // telephone, tablet, small desktop
assert.ok(existsSync(`${site}/docs/index.html`), 'make site first');
// index.html only leads to docs/index.html
const all = readdirSync(site, {recursive: true}).filter(name => name.endsWith('.html') && !/^(_static|_downloads|index\.html)/.test(name));
const pages = chosen.length ? chosen : all;
const pictured = ['docs/index.html', 'figures/README.html', 'figures/CLAIMS.html', 'notebooks/www25/fig4_noisy_signals.html',
  'docs/formulas.html', 'docs/lesson.html', 'docs/symbols.html', 'docs/reference.html'];
mkdirSync(`${build}/site`, {recursive: true});

const complaints = new Set(), anchors = new Map(), links = [];
const browser = await chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync']});

/** What is wrong with the page that is open, whatever its links lead to. */
function faults(machine) {
  const wrong = [];
  for (const image of document.images) {
    if (!image.alt.trim()) wrong.push(`no alternative text: ${image.src}`);
    if (image.complete && !image.naturalWidth) wrong.push(`no image: ${image.src}`);
    if (!image.closest('a')) wrong.push(`a picture that leads nowhere: ${image.src}`);
  }
  if (document.body.innerText.includes(machine)) wrong.push(`names the folder it was made in, ${machine}`);
  const article = document.querySelector('article') ?? document.body;
  // a table that stayed text has a line of dashes, which typography makes longer
  for (const paragraph of article.querySelectorAll('p, li, td')) {
    if (/\|\s*:?[-–—]+:?\s*\|/.test(paragraph.textContent)) wrong.push(`a raw table: ${paragraph.textContent.slice(0, 60)}`);
  }
  // a file may be downloaded by its own name, but not by that of a function in it
  for (const name of article.querySelectorAll('a.download code')) {
    const file = name.textContent.split('/').at(-1);
    if (!name.closest('a').pathname.endsWith(`/${file}`)) wrong.push(`a name downloads a file: ${name.textContent}`);
  }
  const {scrollWidth} = document.documentElement;
  if (scrollWidth > innerWidth) wrong.push(`the page is ${scrollWidth} px wide`);
  // furo cuts off what is too wide; what lies in a box that scrolls by itself can be read, on a telephone
  const scrolls = element => /auto|scroll/.test(getComputedStyle(element).overflowX);
  for (const element of article.querySelectorAll('*')) {
    if (element.getBoundingClientRect().right <= innerWidth + 1) continue;
    let box = element;
    while (box !== article && !scrolls(box)) box = box.parentElement;
    if (box === article || box.getBoundingClientRect().right > innerWidth + 1) {
      wrong.push(`too wide: ${element.tagName} ${element.className}: ${element.textContent.slice(0, 40)}`);
      break;
    }
  }
  // on a desktop nobody finds a scroll bar below a long table
  for (const table of article.querySelectorAll('table')) {
    const box = table.closest('.table-wrapper, .cell_output');
    if (box && innerWidth >= 1280 && box.scrollWidth > box.clientWidth + 1) wrong.push(`a table must be scrolled: ${table.textContent.trim().slice(0, 40)}`);
  }
  return wrong;
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
    await page.evaluate(() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))); // cards are made
    for (const fault of await page.evaluate(faults, resolve('.'))) complain(fault);
    if (name.startsWith('notebooks/') && !await page.locator('a[download]').count()) complain('offers no notebook');
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
    await page.getByText('Search finished').waitFor(); // results come one after the other
    const first = await found.evaluateAll(links => links.slice(0, 10).map(link => link.href).join(' '));
    assert.match(first, place, `the first results for ${words} have the page`);
  }
}

/** The filter of the claims: each choice shows what it counts, and cards have the heads of their columns. */
async function claims() {
  const page = await browser.newPage({viewport: {width: 390, height: 844}});
  await page.goto(pathToFileURL(`${site}/figures/CLAIMS.html`).href);
  const rows = page.locator('h3 ~ .table-wrapper tbody tr:visible'), form = page.locator('form.filter');
  const total = await rows.count();
  assert.ok(total > 100, `${total} claims`);
  for (const name of ['paper', 'status']) {
    const options = await form.locator(`[name=${name}] option`).allInnerTexts();
    assert.ok(options.length > 3, `${name}: ${options}`);
    let sum = 0;
    for (const option of options.filter(option => option !== 'all')) {
      await form.locator(`[name=${name}]`).selectOption(option);
      const count = await rows.count();
      assert.equal(await form.locator('output').innerText(), `${count} of ${total} claims`);
      assert.ok(count > 0, `${name} ${option}: no claim`);
      sum += count;
    }
    assert.equal(sum, total, `each claim has one ${name}`);
    await form.locator(`[name=${name}]`).selectOption('all');
  }
  const head = await rows.first().locator('td').nth(3).evaluate(cell => getComputedStyle(cell, '::before').content);
  assert.equal(head, '"here: "', 'a card names its parts');
  await page.close();
}

/** A page that needs nothing but itself. */
async function alone(path, width) {
  const page = await browser.newPage({viewport: {width, height: 844}});
  const complain = what => complaints.add(`docs/lesson.html alone, ${width} px: ${what}`);
  page.on('console', message => message.type() === 'error' && complain(message.text()));
  page.on('request', request => request.url().endsWith('lesson.html') || /^(data|blob):/.test(request.url()) || complain(`request of ${request.url()}`));
  await page.goto(pathToFileURL(path).href);
  for (const fault of await page.evaluate(faults, resolve('.'))) complain(fault);
  const links = await page.evaluate(() => [...document.links].map(link => link.href));
  for (const href of links) /^https?:/.test(href) || new URL(href).hash || complain(`leads to a file: ${href}`);
  await page.screenshot({path: `${build}/site/lesson-alone-${width}.png`});
  await page.close();
}

/** The sliders of the lesson: the numbers of its text, by mouse and by key, on the screen of a lecture room. */
async function lesson(path) {
  const page = await browser.newPage({viewport: {width: 1280, height: 720}});
  page.on('pageerror', error => complaints.add(String(error)));
  await page.goto(pathToFileURL(path).href);
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
  for (const width of WIDTHS) await open('light', width);
  await open('dark', 1280, pictured);
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
  await claims();
  await lesson(`${site}/docs/lesson.html`);
  // the file alone, in an empty folder
  mkdirSync(`${build}/alone`, {recursive: true});
  copyFileSync('docs/lesson.html', `${build}/alone/lesson.html`);
  for (const width of WIDTHS) await alone(`${build}/alone/lesson.html`, width);
  await lesson(`${build}/alone/lesson.html`);
  assert.equal(complaints.size, 0, `${complaints.size} faults`);
  console.log(`test-site: passed, ${pages.length} pages, ${followed} links`);
} catch (error) {
  console.error(`test-site: FAILED: ${error.message}`, [...complaints].slice(0, 50));
  process.exitCode = 1;
} finally {
  await browser.close();
}
