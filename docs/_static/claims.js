// The claims, filtered by status, paper and whose they are; claims.html?status=differs opens with a filter. Without this, all are shown.
document.addEventListener('DOMContentLoaded', () => {
  const table = document.querySelector('table.all-claims');
  if (!table) return;
  const rows = [...table.tBodies[0].rows], asked = new URLSearchParams(location.search);
  const bar = document.createElement('form'), count = document.createElement('output');
  bar.className = 'filter';
  const selects = ['status', 'paper', 'by'].map(kind => {
    const label = document.createElement('label'), select = document.createElement('select');
    for (const value of ['', ...new Set(rows.map(row => row.dataset[kind]))]) select.add(new Option(value || 'all', value));
    select.name = kind;
    select.value = asked.get(kind) ?? '';
    if (select.selectedIndex < 0) select.value = '';
    label.append({status: 'Status ', paper: 'Paper ', by: 'Claim of '}[kind], select);
    bar.append(label);
    return select;
  });
  const show = () => {
    for (const row of rows) row.hidden = selects.some(select => select.value && row.dataset[select.name] !== select.value);
    count.value = `${rows.filter(row => !row.hidden).length} of ${rows.length}`;
  };
  bar.append(count);
  bar.addEventListener('change', show);
  table.parentElement.before(bar);
  show();
});
