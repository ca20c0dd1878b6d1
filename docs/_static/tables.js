// Tables that do not fit become cards, one for each row; CLAIMS has a filter.
// Without a script, wide tables scroll sideways, and the page shows all claims.
'use strict';
{
  const LONG = 60; // letters of a cell; in a column of a phone it would be a ribbon

  /** Give each cell the head of its column, for its card. */
  function label(table) {
    const heads = [...table.tHead.rows[0].cells].map(cell => cell.innerText.trim());
    for (const row of table.tBodies[0].rows) {
      [...row.cells].forEach((cell, column) => {
        if (cell.innerText.trim() || cell.querySelector('img, svg')) cell.dataset.label = heads[column] ?? '';
        else cell.classList.add('empty');
      });
    }
  }

  /** Cards if the table is wider than its place, or its columns are ribbons. */
  function fit(table) {
    table.classList.remove('cards');
    const place = table.parentElement;
    const phone = innerWidth < 700 && table.rows[0].cells.length > 2;
    const ribbons = phone && [...table.querySelectorAll('td')].some(cell => cell.textContent.length > LONG);
    if (ribbons || table.scrollWidth > place.clientWidth + 1) table.classList.add('cards');
  }

  /** Choose the claims of a paper, or of a status. */
  function filter(article) {
    const rows = [...article.querySelectorAll('h3 ~ .table-wrapper tbody tr')].map(row => ({
      row,
      paper: row.closest('section').querySelector('h3').innerText.split('/')[0],
      status: row.cells[3].innerText.match(/^\w*/)[0],
    }));
    const choice = name => {
      const values = [...new Set(rows.map(row => row[name]))];
      const options = ['all', ...values].map(value => `<option>${value}</option>`);
      return `<label>${name} <select name="${name}">${options.join('')}</select></label>`;
    };
    const form = document.createElement('form');
    form.className = 'filter';
    form.innerHTML = `${choice('paper')} ${choice('status')} <output></output>`;
    const show = () => {
      const {paper, status} = Object.fromEntries(new FormData(form));
      let count = 0;
      for (const {row, ...its} of rows) {
        row.hidden = ![its.paper, 'all'].includes(paper) || ![its.status, 'all'].includes(status);
        count += !row.hidden;
      }
      const all = paper === 'all' && status === 'all';
      for (const section of article.querySelectorAll('section section')) {
        section.hidden = !all && !section.querySelector('h3 ~ .table-wrapper tbody tr:not([hidden])');
      }
      form.querySelector('output').textContent = `${count} of ${rows.length} claims`;
    };
    form.addEventListener('input', show);
    article.querySelector('section section').before(form);
    show();
  }

  document.addEventListener('DOMContentLoaded', async () => {
    const claims = document.getElementById('does-the-paper-hold-verdicts-and-claims');
    if (claims) filter(claims);
    await window.MathJax?.startup?.promise; // formulas have their width then
    const tables = [...document.querySelectorAll('.table-wrapper > table')].filter(table => table.tHead);
    tables.forEach(label);
    const all = () => tables.forEach(fit);
    all();
    let width = innerWidth;
    addEventListener('resize', () => {
      if (width === innerWidth) return;
      width = innerWidth;
      all();
    });
  });
}
