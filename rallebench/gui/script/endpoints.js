/* Gradio's own page of the endpoints. Gradio opens it by a button in its hidden footer, and drops the address after
   ``#`` when it opens and closes. */
const open_endpoints = () => {
  const here = location.hash;
  let is_open = false;
  const watch = new MutationObserver(() => {
    const close = $('.api-docs .banner-wrap > button');
    if (is_open === !!close) return;
    is_open = !!close;
    history.replaceState(null, '', location.pathname + here);
    if (is_open) {
      close.setAttribute('aria-label', 'Close');
      close.focus();
      return;
    }
    watch.disconnect();
    $('.keys-button').focus();
  });
  watch.observe(document.body, {childList: true, subtree: true});
  $('footer .show-api').click();
};
window.addEventListener(
  'keydown',
  ev => {
    if (!$('.api-docs')) return;
    ev.stopImmediatePropagation(); // the keys of the page behind it rest
    if (ev.key === 'Escape') $('.api-docs .banner-wrap > button')?.click();
  },
  true,
);
