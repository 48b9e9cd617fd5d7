/* Data: while gold pages are chosen, a digit takes the page of that rank, and Enter accepts the proposal. */
document.addEventListener('keydown', ev => {
  const view = $('#v-data-gold:not([hidden])');
  if (!view || ev.defaultPrevented || ev.ctrlKey || ev.metaKey || ev.altKey) return;
  if (ev.target.closest?.('input, select, textarea, dialog, .drawer')) return;
  if (/^[1-9]$/.test(ev.key)) $$('[data-do="gold.take"]', view)[+ev.key - 1]?.click();
  else if (ev.key === 'Enter' && !ev.target.closest?.('button, a'))
    $('[data-do="gold.accept"]', view)?.click();
});
