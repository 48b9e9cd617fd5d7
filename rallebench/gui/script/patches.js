/* Applies patches: HTML of elements, messages, dialogs, drawers, downloads. */
/* The visible field of a name; settings have a prefix. */
const field_named = (name, place) => {
  const root = place?.closest?.('dialog, .drawer, .view') || $('.view:not([hidden])') || document;
  const names = ['', 'set-'].map(prefix => '[name="' + CSS.escape(prefix + name) + '"]');
  return $$(names.join(), root).find(el => el.type !== 'hidden' && el.offsetParent !== null);
};
const clear_problems = root => {
  $$('.problem[role=alert]', root).forEach(p => p.remove());
  $$('[aria-invalid]', root).forEach(el => el.removeAttribute('aria-invalid'));
};
/* ``name``: the field to show the problem at. */
const problem = (text, place, name) => {
  const p = document.createElement('p');
  p.className = 'problem';
  p.setAttribute('role', 'alert');
  p.textContent = text;
  const field = name && field_named(name, place);
  if (field) {
    clear_problems(field.closest('dialog, .drawer, .view') || document);
    field.setAttribute('aria-invalid', 'true');
    (field.closest('.field-pair') || field.closest('label') || field).after(p);
    p.scrollIntoView({block: 'nearest'});
    return;
  }
  const root = place?.isConnected ? place : $('.view:not([hidden])');
  if (!root) return rb.say(text, 'bad');
  const slot = root.matches('[data-problems]') ? root : $('[data-problems]', root) || root;
  slot.append(p);
  p.scrollIntoView({block: 'nearest'});
};

/* The same element in HTML that is drawn again: by its id, its name, or what it leads to. */
const identity = el => {
  if (el.id) return '#' + el.id;
  if (el.matches('summary')) return 'summary ' + identity(el.parentElement);
  if (el.matches('details')) {
    const href = $('a', el)?.getAttribute('href');
    return ['details', el.firstElementChild?.title, $('[data-id]', el)?.dataset.id, href].join(' ');
  }
  const value = /checkbox|radio/.test(el.type) ? el.value : '';
  const data = JSON.stringify(el.dataset);
  return [el.tagName, el.name, value, el.getAttribute('href'), data].join(' ');
};
/* The pressed element. A button redrawn between press and release would get no click, so new HTML around it waits. */
let pressed = null;
const later = new Map();
document.addEventListener(
  'pointerdown',
  ev => (pressed = ev.target.closest?.('button, a, summary, label, [data-do]') || null),
  true,
);
const release = () =>
  setTimeout(() => {
    pressed = null;
    const waiting = [...later];
    later.clear();
    waiting.forEach(([el, html]) => fill(el, html));
  });
['pointerup', 'pointercancel', 'dragend', 'blur'].forEach(name => window.addEventListener(name, release, true));
/* Texts typed since their form was last sent, by form and field: new HTML of the same form has not heard of them. */
const unsent_texts = el =>
  $$('[data-own]', el).flatMap(form =>
    $$('input[name]:not([type=hidden]), textarea[name]', form)
      .filter(f => /^(text|textarea)$/.test(f.type) && f.value !== (f._sent ?? f.defaultValue))
      .map(f => [form.dataset.own, f.name, f.value]),
  );
const put_back = (el, texts) => {
  for (const [own, name, text] of texts) {
    const form = $$('[data-own]', el).find(other => other.dataset.own === own);
    const field = form && $$('[name]', form).find(other => other.name === name);
    if (!field || field.value === text) continue;
    field.value = text;
    setTimeout(() => field.dispatchEvent(new Event('change', {bubbles: true})));
  }
};
/* Only elements that were scrolled are asked for their position, since each question costs a layout of the page. */
document.addEventListener('scroll', ev => (ev.target._scrolled = true), {capture: true, passive: true});
/* New HTML in an element; open folds, scroll positions, focus and selection stay. */
const fill = (el, html) => {
  if (pressed?.isConnected && el !== pressed && el.contains(pressed)) {
    later.set(el, html);
    return;
  }
  if (el._html === html) return;
  for (let up = el.parentElement; up; up = up.parentElement) up._html = null; // it differs from now on
  el._html = html;
  const active = document.activeElement;
  const inside = el.contains(active) && active !== el;
  const mark = inside && identity(active);
  const tag = active?.tagName;
  const selects = inside && 'selectionStart' in active && active.type !== 'number';
  const range = selects ? [active.selectionStart, active.selectionEnd] : null;
  const typed = range ? active.value : null;
  const folds = new Map($$('details[id], details.menu', el).map(d => [identity(d), d.open]));
  const scrolled = $$('[id]', el).filter(x => x._scrolled && x.scrollTop);
  const scrolls = scrolled.map(x => [x.id, x.scrollTop]);
  const texts = unsent_texts(el);
  el.innerHTML = html;
  decorate(el);
  put_back(el, texts);
  $$('details[id], details.menu', el).forEach(d => {
    const open = folds.get(identity(d));
    if (open !== undefined) d.open = open;
  });
  scrolls.forEach(([id, top]) => {
    const x = document.getElementById(id);
    if (x) x.scrollTop = top;
  });
  const again = mark && $$(tag, el).find(x => identity(x) === mark);
  if (again) {
    again.focus({preventScroll: true});
    if (range && again.value === typed)
      try {
        again.setSelectionRange(...range);
      } catch {
        /* not a text field */
      }
  }
  $('[data-begin]', el)?.focus();
};
const apply = (patch, place) => {
  for (const [key, value] of Object.entries(patch || {})) {
    if (key[0] === '#') {
      const el = document.getElementById(key.slice(1));
      if (el && value !== null) fill(el, value);
    } else if (key === 'problem') problem(value, place, patch.field);
    else if (key === 'sound') clear_problems(document);
    else if (key === 'say') rb.say(value, '', patch.undo);
    else if (key === 'title') document.title = value + ' · rallebench';
    else if (key === 'chain') fill($('#chain'), value);
    else if (key === 'dialog') dialog(value);
    else if (key === 'drawer') replace_drawer(value);
    else if (key === 'store') Object.entries(value).forEach(([k, v]) => store(k, v));
    else if (key === 'download') download(value);
    else if (key === 'event') document.dispatchEvent(new CustomEvent(value.name, {detail: value}));
  }
  if (patch?.address) {
    const {trace} = rb.query(); // the drawer stays open beside a list that is filtered
    if (location.hash !== patch.address) history.replaceState(history.state, '', patch.address);
    if (trace) rb.set('trace', trace);
    show_view();
  }
  if (patch?.go) rb.go(patch.go);
};
rb.apply = apply;
rb.say = (text, kind = '', undo = '') => {
  const t = document.createElement('div');
  t.className = 'toast ' + kind;
  t.setAttribute('role', 'status');
  t.textContent = text;
  t.insertAdjacentHTML('beforeend', undo);
  t.onclick = () => t.remove();
  $('#toasts').append(t);
  setTimeout(() => t.remove(), 4000 + 40 * text.length);
};
const download = file => {
  const a = document.createElement('a');
  const bytes = file.base64 ? Uint8Array.from(atob(file.base64), c => c.charCodeAt(0)) : file.text;
  a.href = URL.createObjectURL(new Blob([bytes], {type: file.type || 'text/plain'}));
  a.download = file.name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
};
let opener = null;
const dialog = html => {
  const d = $('#dialog');
  if (!html) {
    d.close();
    return;
  }
  if (!d.open) {
    opener = document.activeElement;
    d._html = null; // what was typed into the same dialog before is gone
  }
  fill(d, html);
  if (!d.open) d.showModal();
  ($('[autofocus]', d) || $('input:not([type=hidden]), select, textarea, button', d))?.focus();
};
const drawer = html => {
  const d = $('#drawer');
  if (html && d.hidden) opener = document.activeElement;
  d._html = null;
  fill(d, html || '');
  d.hidden = !html;
  if (html) ($('[data-keys]', d) || $('input, select, textarea, button, a', d))?.focus();
  else if (opener?.isConnected) opener.focus();
  keep_focus();
};
/* A drawer that an action opens or closes; an open trace leaves the address. */
const replace_drawer = html => {
  drawer(html);
  if (html.includes('data-trace-open')) return;
  if (html) rb.set('trace', null);
  else leave_trace();
};
const close_panels = () => {
  const d = $('#dialog');
  if (d?.open) d.close();
  if ($('#drawer') && !$('#drawer').hidden) drawer('');
  $$('details.menu[open]').forEach(m => (m.open = false));
};
rb.confirm = (text, verb) =>
  new Promise(done => {
    const d = $('#confirm');
    $('p', d).textContent = text;
    $('.yes', d).textContent = verb || 'Continue';
    let yes = false;
    $('.yes', d).onclick = () => {
      yes = true;
      d.close();
    };
    $('.keep', d).onclick = () => d.close();
    d.onclose = () => done(yes);
    d.showModal();
    $('.yes', d).focus();
  });

/* Sets up new HTML: windowed lists, lazy parts, and the mounts of places. */
const mounts = [];
rb.mount = (selector, action) => mounts.push([selector, action]);
const seen = new IntersectionObserver(entries =>
  entries.forEach(e => {
    if (e.isIntersecting) {
      seen.unobserve(e.target);
      press(e.target);
    }
  }),
);
/* On a read-only page, elements whose action would start or change something rest. */
const refuse_changes = root =>
  $$('[data-do], [data-upload]', root).forEach(el => {
    if (['open', ...PERMITTED].includes(el.dataset.upload || el.dataset.do)) return;
    el.setAttribute('aria-disabled', 'true');
    el.title = 'Read-only: this page starts and changes nothing';
    for (const control of [el, ...$$('input', el)]) control.disabled = true;
  });
const decorate = root => {
  if (PERMITTED) refuse_changes(root);
  $$('[data-list]', root).forEach(windowed);
  $$('[data-lazy]', root).forEach(el => seen.observe(el));
  for (const [selector, action] of mounts) $$(selector, root).forEach(action);
};
