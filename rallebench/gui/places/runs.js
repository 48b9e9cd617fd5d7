/* Ticks of the list of runs stay while rows come and go; Compare counts them. */
const ticked = new Set();
const count_ticked = () => {
  const b = $('[data-do="runs.compare"]');
  if (!b) return;
  b.dataset.pick = [...ticked].join('/');
  b.disabled = ticked.size < 2;
  b.textContent = ticked.size > 1 ? 'Compare ' + ticked.size : 'Compare';
};
rb.mount('#list-runs', list => {
  list.drawn = () =>
    $$('input[type=checkbox]', list).forEach(box => {
      box.checked = ticked.has(box.value);
    });
  list.onchange = ev => {
    if (ev.target.type === 'checkbox') {
      ticked[ev.target.checked ? 'add' : 'delete'](ev.target.value);
      count_ticked();
    }
  };
  list.drawn();
});
rb.mount('[data-do="runs.compare"]', count_ticked);
document.addEventListener('rb-gone', ev => {
  ticked.delete(ev.detail.run);
  count_ticked();
});
document.addEventListener('rb-rows', ev => $('#list-' + ev.detail.list)?.redraw());
