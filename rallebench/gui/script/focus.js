/* The focus. Where the focused control is redrawn away, hidden or disabled, the browser drops the focus to the body, and a
   keyboard starts at the top of the page again; here it goes to the next best control. */
let focus_path = []; // the focused element and all that was around it
let focus_at = 0; // its place among the controls of its part
const CONTROLS = 'a[href], button, input, select, textarea, summary, [tabindex]';
const takes_focus = el => el.checkVisibility?.({visibilityProperty: true}) && !el.disabled;
const controls_in = root =>
  $$(CONTROLS, root).filter(el => takes_focus(el) && (el.tabIndex >= 0 || el === document.activeElement));
const path_of = el => (el ? [el, ...path_of(el.parentElement)] : []);
const part_of = path => path.find((el, depth) => depth && el.id);
document.addEventListener('focusin', ev => {
  if (ev.target.closest('#confirm')) return;
  focus_path = path_of(ev.target);
  const part = part_of(focus_path);
  focus_at = part ? Math.max(0, controls_in(part).indexOf(ev.target)) : 0;
});
/* A press on a place without a control takes the focus away on purpose, as does a field that is left and still there. */
document.addEventListener('pointerdown', () => (focus_path = []), true);
document.addEventListener('focusout', ev =>
  setTimeout(() => {
    const left = ev.target;
    const is_free = document.activeElement === document.body && left === focus_path[0];
    if (is_free && left.isConnected && takes_focus(left)) focus_path = [];
  }),
);
const heading_of = root => {
  const heading = root && $('h1', root);
  if (heading) heading.tabIndex = -1;
  return heading || root;
};
/* The same control in new HTML, the button of the panel or menu that closed around it, the control in its place, or the
   heading of the view. */
const next_best = () => {
  const [lost, ...around] = focus_path;
  const view = $('.view:not([hidden])');
  if (lost.matches('h1')) return heading_of(view);
  const name = identity(lost);
  const again = $$(lost.tagName).find(el => takes_focus(el) && identity(el) === name);
  if (again) return again;
  const pop = around.find(el => el.matches('.pop'));
  if (pop) return $$('[data-pop]').find(el => el.dataset.pop === '#' + pop.id);
  const menu = around.find(el => el.matches('details.menu'))?.firstElementChild;
  if (menu?.isConnected && takes_focus(menu)) return menu;
  const ids = around.map(el => el.id).filter(Boolean);
  const part = ids.map(id => document.getElementById(id)).find(el => el && takes_focus(el));
  if (!part || part === view || !part.closest('.view, .drawer, dialog[open]')) return heading_of(view);
  const near = controls_in(part);
  return near[part.id === ids[0] ? Math.min(focus_at, near.length - 1) : near.length - 1] || heading_of(view);
};
/* In the next frame, since a browser drops the focus of a hidden element only then. */
let keeping = false;
const keep_focus = () => {
  if (keeping) return;
  keeping = true;
  frame(() => {
    keeping = false;
    const active = document.activeElement;
    const is_lost = !active || active === document.body || !takes_focus(active);
    if (is_lost && focus_path.length) next_best()?.focus({preventScroll: true});
  });
};
document.addEventListener('close', () => keep_focus(), true); // of dialogs
document.addEventListener('click', ev => {
  if (!ev.target.closest?.('.skip')) return;
  ev.preventDefault(); // the part behind # in the address names the view
  heading_of($('.view:not([hidden])'))?.focus();
});
