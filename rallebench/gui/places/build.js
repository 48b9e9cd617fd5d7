/* Build: what an edit makes out of date is marked at once, and the chain is kept as it is typed. */
const stale_from = index => {
  $$('#chain-form .out, #chain-form .gist').forEach(o => {
    if (+o.id.split('-')[1] >= index) o.classList.add('stale');
  });
  const retrieves = $$('#chain-form [name$=_kind]').findLastIndex(kind => kind.value === 'retrieve');
  $('#build-result')?.classList.add('stale');
  $('#build-result')?.classList.toggle('passages-too', index <= retrieves);
};
const fresh = index => {
  $$('#v-build-one .stale').forEach(o => {
    if (index === undefined || o.id === 'out-' + index || o.id === 'gist-' + index)
      o.classList.remove('stale', 'passages-too');
  });
};
document.addEventListener('rb-fresh', ev => {
  fresh(ev.detail.index);
  $('#list-build-questions')?.redraw();
});
document.addEventListener('rb-stale', ev => stale_from(ev.detail.index));
let typed = 0;
document.addEventListener('input', ev => {
  const form = ev.target.closest?.('#chain-form');
  if (!form) return;
  const act = ev.target.closest('.act');
  stale_from(act ? +act.id.split('-')[1] : 0);
  clearTimeout(typed);
  typed = setTimeout(() => rb.act('build.edit', rb.fields(form), form), 300);
});
document.addEventListener('rb-bottom', () => {
  const t = $('#turns');
  if (t) t.scrollTop = t.scrollHeight;
});
/* The page around a passage: its cited span, else the passage, in the middle. */
const show_span = () => {
  const root = $('#drawer').hidden ? $('#v-data-page') : $('#drawer');
  ($('.page-text .cited', root) || $('.page-text .cited-passage', root))?.scrollIntoView({block: 'center'});
};
document.addEventListener('rb-page', show_span);
document.addEventListener('rb-cited', () => {
  $('#chat-side .cited')?.scrollIntoView({block: 'nearest'});
  show_span();
});
