/* Keys. Single letters do nothing in a field, nor with Ctrl, Alt or Meta. */
const typing = t =>
  t.isContentEditable ||
  /^(TEXTAREA|SELECT)$/.test(t.tagName) ||
  (t.tagName === 'INPUT' && !/checkbox|radio|button/.test(t.type));
const visible = el => el && el.offsetParent !== null;
const click_first = (selector, root, ev) => {
  const el = $$(selector, root || document).find(visible);
  if (!el) return;
  ev.preventDefault();
  el.click();
};
const close_open = target => {
  if (!$('#drawer').hidden) replace_drawer('');
  $$('.pop:not([hidden])').forEach(p => (p.hidden = true));
  $$('details.menu[open]').forEach(m => {
    m.open = false;
    m.firstElementChild.focus();
  });
  if (typing(target)) {
    focus_path = []; // the keys of the view are meant now
    target.blur();
  } else keep_focus();
};
/* An error to label: 1 to 9 give it a category and go on, j and k go on. */
const label_by_key = (box, key) => {
  const boxes = $$('[data-keys]', box.parentElement);
  const category = $$('option', $('#' + box.dataset.keys))[+key - 1];
  const step = category ? 1 : {j: 1, k: -1}[key];
  if (!step) return false;
  if (category) $('input', box).value = category.value;
  (boxes[boxes.indexOf(box) + step] || box).focus();
  return true;
};
/* A key of buttons that many parts of a view have, such as Right and Wrong: of the part with the focus, else the last. */
const find_keyed = (key, part = null) => {
  const view = $('.view:not([hidden])');
  const keyed = view ? $$('[data-key]', view).filter(el => el.dataset.key === key && visible(el)) : [];
  return keyed.find(el => part?.contains(el)) || keyed.at(-1);
};
/* A key that is pressed before the last one has brought the next question waits for it. */
let turn = Promise.resolve();
const press_in_turn = key => {
  turn = turn.then(
    () =>
      new Promise(done => {
        const el = find_keyed(key);
        if (el) press(el, done).then(done);
        else done();
      }),
  );
};
const press_keyed = ev => {
  const key = ev.key.toLowerCase();
  const el = find_keyed(key, ev.target.closest?.('section'));
  if (!el) return false;
  ev.preventDefault();
  if (el.dataset.turn) press_in_turn(key);
  else el.click();
  return true;
};
const RUNS = '[data-run] input:not([type=checkbox], [type=radio], [data-whole])';
/* Enter runs what is typed: the plan of the form is counted first, since its button may rest or have another label. */
const run_typed = async (panel, ev) => {
  const edited = ev.target.closest?.('[data-on=edit]');
  if (!edited) return click_first('[data-primary]', panel, ev);
  ev.preventDefault();
  if (soon) {
    settle();
    counted = press(edited);
  }
  await counted;
  click_first('[data-primary]', panel, ev);
};
let leader = 0;
window.addEventListener(
  'keydown',
  ev => {
    const control = ev.ctrlKey || ev.metaKey;
    const view = $('.view:not([hidden])');
    const modal = $('dialog[open]');
    const panel = modal || ($('#drawer').contains(ev.target) ? $('#drawer') : null);
    const own = ev.key === 'Enter' && !ev.isComposing && ev.target.dataset?.enter;
    if (own && ev.target.value.trim()) {
      ev.preventDefault();
      settle();
      return rb.act(own, {[ev.target.name]: ev.target.value}, ev.target);
    }
    const runs = ev.key === 'Enter' && !ev.isComposing && ev.target.matches?.(RUNS);
    if ((control || runs) && ev.key === 'Enter') return run_typed(panel, ev);
    if (control && ev.key === 's') return click_first('[data-save]', view, ev);
    const own_escape = ev.target.closest?.('.editor') && $('.cm-tooltip-autocomplete, .editor.full');
    if (own_escape && ev.key === 'Escape') return; // the editor closes its list, or leaves the full screen
    if (ev.key === 'Escape' && !modal) return close_open(ev.target);
    if (ev.key === 'Enter' && !ev.shiftKey && !ev.isComposing && ev.target.dataset?.on === 'enter') {
      ev.preventDefault();
      return press(ev.target);
    }
    if (ev.key === 'Enter' && ev.target.dataset?.href) return rb.go(ev.target.dataset.href);
    if (ev.key === 'Enter' && ev.target.matches?.('[role=button][data-trace]')) return open_door(ev.target, ev);
    if (typing(ev.target) || control || ev.altKey || modal) return;
    const box = ev.target.closest?.('[data-keys]');
    if (box && label_by_key(box, ev.key)) {
      ev.preventDefault();
      return;
    }
    if (leader && Date.now() - leader < 1500) {
      leader = 0;
      const place = Object.keys(FIRST)[+ev.key - 1];
      if (place) {
        ev.preventDefault();
        rb.go('#/' + FIRST[place]);
        return;
      }
    }
    if (ev.key === 'g' || ev.key === 'G') {
      leader = Date.now();
      return;
    }
    if (press_keyed(ev)) return;
    const step = {j: 1, k: -1}[ev.key];
    if (step && step_trace(ev.key)) return;
    const list = view && $$('[data-list]', view).find(visible);
    if (step && list) {
      ev.preventDefault();
      if (!list.dataset.pick) list.focus({preventScroll: true}); // Enter opens its row
      list.step(step);
    } else if (ev.key === '?') {
      const k = $('#keys');
      k.hidden = !k.hidden;
    } else if (ev.key === '/') {
      const f = view && $$('[data-filter]', view).find(visible);
      if (f) {
        ev.preventDefault();
        f.focus();
        f.select?.();
      }
    }
  },
  true,
);

/* Clicks and changes */
document.addEventListener('click', ev => {
  const t = ev.target;
  $$('details.menu[open]').forEach(m => {
    if (!m.contains(t)) m.open = false;
    else if (t.closest('button, a')) {
      m.firstElementChild.focus();
      m.open = false;
    }
  });
  if (!t.closest('#jobs, #job')) $('#jobs') && ($('#jobs').hidden = true);
  if (!t.closest('#keys, .keys-button')) $('#keys') && ($('#keys').hidden = true);
  const stop = t.closest('[data-stop]');
  if (stop) {
    rb.stop(stop.dataset.stop);
    return;
  }
  if (t.closest('[data-close]')) {
    close_panels();
    leave_trace();
    return;
  }
  const el = t.closest('[data-do]:not([data-follow])');
  if (el?.href && (ev.ctrlKey || ev.metaKey || ev.shiftKey)) return; // a new tab or window
  if (el && !el.dataset.on && !el.dataset.lazy && !('list' in el.dataset)) {
    ev.preventDefault();
    press(el);
    return;
  }
  if (t.closest('[data-dark]')) {
    rb.dark();
    return;
  }
  if (t.closest('[data-endpoints]')) {
    $('#keys').hidden = true;
    open_endpoints();
    return;
  }
  const pop = t.closest('[data-pop]');
  if (pop) {
    const p = $(pop.dataset.pop);
    p.hidden = !p.hidden;
    return;
  }
  const door = t.closest('[data-trace]') || $(':scope > .door', t.closest('td') || t);
  if (door && (door.matches('button') || !t.closest('a, button, summary'))) {
    open_door(door, ev);
    return;
  }
  const row = t.closest('[data-href]');
  if (row && !t.closest('a, button, input, label, summary, select, textarea')) {
    if (ev.ctrlKey || ev.metaKey) window.open(row.dataset.href);
    else rb.go(row.dataset.href);
  }
});
/* The action of a field that is being typed in; it waits for a pause. */
let soon = 0;
let counted = Promise.resolve();
const settle = () => {
  clearTimeout(soon);
  soon = 0;
};
const later_press = el => {
  settle();
  soon = setTimeout(() => {
    soon = 0;
    counted = press(el);
  }, 200);
};
document.addEventListener('input', ev => {
  const number = ev.target.matches?.('input[type=number]:not([data-whole])');
  const el = ev.target.closest?.(number ? '[data-on=input], [data-on=edit]' : '[data-on=input]');
  if (el) later_press(el);
});
document.addEventListener('change', ev => {
  const el = ev.target.closest?.('[data-on=change], [data-on=edit]');
  if (el?.dataset.on === 'edit') settle();
  if (el) press(el);
  const box = ev.target.closest?.('[data-upload]');
  if (box && ev.target.type === 'file' && ev.target.files.length) {
    send_files(box, [...ev.target.files]);
    ev.target.value = ''; // the same file may be chosen again after it was changed
  }
});
document.addEventListener('submit', ev => ev.preventDefault());
window.addEventListener('beforeunload', ev => {
  if ($('[data-unsaved]')) {
    ev.preventDefault();
    ev.returnValue = '';
  }
});
