// The sliders of docs/lesson.md on the site, by the page's own formulas; as in
// notebooks/lesson.ipynb. Without a script the page keeps its pictures.
'use strict';
{
  const FAST = 9, SLOW = 1, BANDWIDTH = 10; // changes a day; crawls a day of both
  const COLOR = {fast: '#0173b2', slow: '#56b4e9', mean: '#029e73', naive: '#de8f05', MLE: '#8f3f86'};
  const RULES = [['uniform', 5, 26], ['optimal', 6, -28], ['proportional', 9, 26]];
  // On a phone a picture has half the width, so that its letters can be read.
  const NARROW = matchMedia('(max-width: 40em)').matches;
  const WIDTH = NARROW ? 450 : 900, HEIGHT = 400;

  /** Share of the time that a copy is fresh. */
  const freshness = (change, crawl) => crawl / (crawl + change);
  const each = fast => ({fast: freshness(FAST, fast), slow: freshness(SLOW, BANDWIDTH - fast)});
  const mean = fast => (each(fast).fast + each(fast).slow) / 2;

  const text = (x, y, words, more = '') => `<text x="${x}" y="${y}" ${more}>${words}</text>`;
  const line = (x1, y1, x2, y2, more = '') => `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="#222" stroke-width="2" ${more}/>`;

  function drawSplit(fast) {
    const share = each(fast), bars = {...share, mean: mean(fast)}, wide = share => 270 * share;
    const x = crawls => 480 + 40 * crawls, y = share => 345 - 560 * (share - 0.2);
    let bar = text(90, 34, `fast ${fast}, slow ${BANDWIDTH - fast} crawls a day`);
    Object.entries(bars).forEach(([name, value], i) => {
      const top = 60 + 95 * i;
      bar += text(80, top + 46, name, 'text-anchor="end"')
        + `<rect x="90" y="${top}" width="${wide(value)}" height="70" fill="${COLOR[name]}"/>`
        + text(100 + wide(value), top + 48, value.toFixed(3), 'font-size="32"');
    });
    bar += line(90, 345, 90 + wide(1), 345) + text(90 + wide(0.5), 385, 'freshness', 'text-anchor="middle"');
    const curve = Array.from({length: 201}, (_, i) => `${x(i / 20)},${y(mean(i / 20))}`).join(' ');
    let drawn = `<polyline points="${curve}" fill="none" stroke="#222" stroke-width="3"/>`
      + `<circle cx="${x(fast)}" cy="${y(mean(fast))}" r="13" fill="${COLOR.mean}"/>`
      + text(480, 34, 'mean freshness') + line(480, 345, 880, 345) + line(480, y(0.65), 480, 345)
      + text(680, 395, 'crawls a day of the fast page', 'text-anchor="middle"');
    for (const value of [0.2, 0.4, 0.5, 0.6]) drawn += text(472, y(value) + 7, value, 'text-anchor="end" font-size="20"');
    for (const [name, crawls, below] of RULES) {
      drawn += `<circle cx="${x(crawls)}" cy="${y(mean(crawls))}" r="6"/>`
        + text(x(Math.min(crawls, 7.2)), y(mean(crawls)) + below + 6, name, 'text-anchor="middle"')
        + text(x(crawls), 370, crawls, 'text-anchor="middle" font-size="20"');
    }
    if (NARROW) drawn = `<g transform="translate(-435 ${HEIGHT})">${drawn}</g>`; // below the bars
    return [bar + drawn, `Freshness of the fast page ${share.fast.toFixed(3)}, of the slow page ${share.slow.toFixed(3)}, mean ${bars.mean.toFixed(3)}.`];
  }

  /** Probabilities of 0 to n changed bits: binomial, with a change in 1 - 1/e of the crawls. */
  function binomial(n) {
    const odds = Math.E - 1, chance = [Math.exp(-n)];
    for (let k = 1; k <= n; k++) chance.push(chance[k - 1] * odds * (n - k + 1) / k);
    return chance;
  }

  function drawEstimators(n) {
    const chance = binomial(n), top = Math.max(...chance);
    const x = rate => 15 + (WIDTH - 60) / 2.5 * rate, y = p => 335 - 230 * p / top, width = Math.max(2, 0.22 * WIDTH / n);
    const estimates = {naive: k => k / n, MLE: k => -Math.log1p(-k / n)};
    let drawn = '';
    for (const [name, estimate] of Object.entries(estimates)) {
      const bars = chance.map((p, k) => p > top / 500 && estimate(k) < 2.5
        ? `M${x(estimate(k)).toFixed(1)} 335V${y(p).toFixed(1)}` : '').join('');
      drawn += `<path d="${bars}" stroke="${COLOR[name]}" stroke-width="${width}" opacity="0.85"/>`;
    }
    drawn += text(x(0.45), 80, 'naive', `text-anchor="end" font-size="34" fill="${COLOR.naive}"`)
      + text(x(1.5), 80, 'MLE', `font-size="34" fill="${COLOR.MLE}"`)
      + line(x(1), 50, x(1), 335, 'stroke-dasharray="10 6"') + line(x(0), 335, x(2.5), 335)
      + text(x(1.25), 395, 'estimated changes a day', 'text-anchor="middle"');
    for (let rate = 0; rate <= 2.5; rate += 0.5) drawn += text(x(rate), 362, rate, 'text-anchor="middle" font-size="20"');
    const never = chance[n]; // all bits are changed
    const infinite = n < 15 ? ` It is infinite with probability ${never.toPrecision(2)}.` : '';
    drawn += text(15, 30, `${n} crawls`);
    const sum = (estimate, bits) => bits.reduce((sum, p, k) => sum + p * estimate(k), 0);
    const naive = sum(estimates.naive, chance), mle = sum(estimates.MLE, chance.slice(0, n)) / (1 - never);
    return [drawn, `Mean of naive ${naive.toFixed(3)}, of the MLE, if finite, ${mle.toFixed(3)}; the truth (dashed) is 1.${infinite}`];
  }

  /** A slider with its picture, and a sentence that a screen reader says too. */
  function slider(id, words, [least, most, step, value], height, draw) {
    const box = document.getElementById(id);
    if (!box) return;
    box.classList.add('lesson');
    box.innerHTML = `<label>${words} <input type="range" min="${least}" max="${most}" step="${step}" value="${value}"></label>`
      + `<svg viewBox="0 0 ${WIDTH} ${height}" aria-hidden="true"></svg><output></output>`;
    const [input, svg, output] = ['input', 'svg', 'output'].map(name => box.querySelector(name));
    const redraw = () => { [svg.innerHTML, output.textContent] = draw(Number(input.value)); };
    input.addEventListener('input', redraw);
    redraw();
  }

  document.addEventListener('DOMContentLoaded', () => {
    slider('lesson-split', 'crawls a day of the fast page', [0, 10, 0.5, 9], NARROW ? 2 * HEIGHT : HEIGHT, drawSplit);
    slider('lesson-estimators', 'number of crawls', [5, 400, 1, 20], HEIGHT, drawEstimators);
  });
}
