/* The frame's script. Python answers every action with a patch (see frame.py); nothing here knows a place. */
const rb = window.rb = {};
const frame = window.rallebenchFrame || window.requestAnimationFrame.bind(window);
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const store = (key, value) => { try { return value === undefined ? localStorage.getItem(key)
  : value === null ? localStorage.removeItem(key) : localStorage.setItem(key, value); } catch { return null; } };

/* A window's identity survives a reload; a duplicated window gets its own. */
let mine = '';
const channel = new BroadcastChannel('rallebench'), self_id = Math.random().toString(36).slice(2), waiting = {};
channel.onmessage = ev => {
  if (ev.data.ask && ev.data.ask === mine && ev.data.from !== self_id) channel.postMessage({taken: mine, to: ev.data.from});
  if (ev.data.taken && ev.data.to === self_id) waiting[ev.data.taken]?.(true); };
const is_open = id => new Promise(done => { waiting[id] = done; channel.postMessage({ask: id, from: self_id}); setTimeout(() => done(false), 60); });
const identify = async () => { mine = sessionStorage.getItem('rb-window') || '';
  if (mine && await is_open(mine)) mine = '';
  if (!mine) mine = [...crypto.getRandomValues(new Uint8Array(16))].map(b => b.toString(16).padStart(2, '0')).join('');
  sessionStorage.setItem('rb-window', mine); rb.window = mine; };

/* The edited chain that a crash left behind: of this window, or of one that is gone. It is sent once. */
let draft = '';
const read_draft = async () => { const text = store('rb-draft'); if (!text) return;
  try { const owner = JSON.parse(text).window; if (owner === mine || !await is_open(owner)) draft = text; } catch { store('rb-draft', null); } };

/* Addresses: #/place/view?key=value */
rb.view = () => { const [place, view] = location.hash.replace(/^#\/?/, '').split('?')[0].split('/');
  const first = FIRST[place] || FIRST[Object.keys(FIRST)[0]]; return FIRST[place] && view ? place + '/' + view : first; };
rb.query = () => Object.fromEntries(new URLSearchParams(location.hash.split('?')[1] || ''));
rb.go = address => { if (location.hash === address) open_view(); else location.hash = address; };
rb.set = (key, value) => { const query = new URLSearchParams(location.hash.split('?')[1] || '');
  if (value === null || value === '') query.delete(key); else query.set(key, value);
  const text = query.toString(); history.replaceState(null, '', '#/' + rb.view() + (text ? '?' + text : '')); };
const show_view = () => { const view = rb.view(), place = view.split('/')[0];
  $$('.view').forEach(v => v.hidden = v.id !== 'v-' + view.replace('/', '-'));
  $$('[data-place]').forEach(a => { const on = a.dataset.place === place; a.classList.toggle('on', on); a.setAttribute('aria-selected', on); });
  return view; };
const open_view = () => { close_panels(); const view = show_view(), data = {view};
  if (draft && view === 'build/one') { data.draft = draft; draft = ''; }
  return rb.act('open', data, $('#v-' + view.replace('/', '-'))); };

/* Actions */
const fields = (root, data = {}) => { if (!root) return data;
  const put = (name, value) => { data[name] = name in data ? [].concat(data[name], value) : value; };
  $$('input[name], select[name], textarea[name]', root).forEach(f => {
    if (f.disabled || f.closest('template')) return;
    if (f.type === 'checkbox' || f.type === 'radio') { if (f.checked) put(f.name, f.value); }
    else if (f.type === 'file') return;
    else if (f.multiple) { data[f.name] = [...f.selectedOptions].map(o => o.value); }
    else put(f.name, f.value); });
  return data; };
rb.fields = fields;
const attributes = el => { const data = {}; for (const [k, v] of Object.entries(el.dataset))
  if (!['do', 'on', 'confirm', 'with', 'tip', 'follow', 'form', 'lazy', 'upload', 'unsaved', 'stop'].includes(k)) data[k.replace(/[A-Z]/g, c => '_' + c.toLowerCase())] = v; return data; };
const press = async el => { if (el.getAttribute('aria-disabled') === 'true') return;
  if (el.dataset.confirm && !await rb.confirm(el.dataset.confirm, el.dataset.confirmVerb || el.textContent.trim())) return;
  const data = fields(el.closest('[data-form]')); if (el.dataset.with) fields($(el.dataset.with), data);
  if (el.name && !(el.name in data)) data[el.name] = el.value;
  return rb.act(el.dataset.do, {...data, ...attributes(el)}, el); };
rb.press = press;
let pending = 0;
rb.act = async (action, data = {}, origin = null) => {
  const place = origin?.closest?.('[data-problems], [data-form], dialog, .drawer, .view') || $('.view:not([hidden])');
  $$('.problem[role=alert]', place || document).forEach(p => p.remove());
  const busy = setTimeout(() => { origin?.setAttribute?.('aria-busy', 'true'); }, 150); pending++;
  const message = {window: mine, action, data, query: rb.query()};
  try {
    let patch = await server.act(message); apply(patch, place);
    while (patch.stream || patch.following) { const id = patch.stream || patch.following;
      patch = await server.more({window: mine, stream: id}); apply(patch, place); if (!patch.over) patch.following = id; }
    return patch;
  } catch (error) { console.error(error); problem('The program does not answer. Is rallebench still running? Start it again, then reload the page.', place); return {}; }
  finally { clearTimeout(busy); pending--; origin?.removeAttribute?.('aria-busy'); } };
rb.stop = action => server.stop({window: mine, action});
rb.idle = () => pending === 0;

/* Patches */
const problem = (text, place) => { const p = document.createElement('p'); p.className = 'problem'; p.setAttribute('role', 'alert'); p.textContent = text;
  const root = place?.isConnected ? place : $('.view:not([hidden])'); if (!root) return rb.say(text, 'bad');
  const slot = root.matches('[data-problems]') ? root : $('[data-problems]', root) || root;
  slot.append(p); p.scrollIntoView({block: 'nearest'}); };
/* The same element in HTML that is drawn again: by its id, its name, or what it leads to. */
const identity = x => x.id ? '#' + x.id : x.matches('summary') ? 'summary ' + identity(x.parentElement)
  : x.matches('details') ? ['details', x.firstElementChild?.title, $('[data-id]', x)?.dataset.id, $('a', x)?.getAttribute('href')].join(' ')
  : [x.tagName, x.name, /checkbox|radio/.test(x.type) ? x.value : '', x.getAttribute('href'), JSON.stringify(x.dataset)].join(' ');
const fill = (el, html) => { if (el._html === html) return; el._html = html;
  const active = document.activeElement, inside = el.contains(active) && active !== el, mark = inside && identity(active), tag = active?.tagName;
  const range = inside && 'selectionStart' in active && active.type !== 'number' ? [active.selectionStart, active.selectionEnd] : null;
  const typed = range ? active.value : null, folds = new Map($$('details[id], details.menu', el).map(d => [identity(d), d.open])), scrolls = $$('[id]', el).filter(x => x.scrollTop).map(x => [x.id, x.scrollTop]);
  el.innerHTML = html; decorate(el);
  $$('details[id], details.menu', el).forEach(d => { const open = folds.get(identity(d)); if (open !== undefined) d.open = open; });
  scrolls.forEach(([id, top]) => { const x = document.getElementById(id); if (x) x.scrollTop = top; });
  const again = mark && $$(tag, el).find(x => identity(x) === mark); if (again) { again.focus({preventScroll: true});
    if (range && again.value === typed) try { again.setSelectionRange(...range); } catch { /* not a text field */ } } };
const apply = (patch, place) => { for (const [key, value] of Object.entries(patch || {})) {
  if (key[0] === '#') { const el = document.getElementById(key.slice(1)); if (el && value !== null) fill(el, value); }
  else if (key === 'problem') problem(value, place);
  else if (key === 'say') rb.say(value);
  else if (key === 'title') document.title = value + ' · rallebench';
  else if (key === 'chain') fill($('#chain'), value);
  else if (key === 'dialog') dialog(value);
  else if (key === 'drawer') drawer(value);
  else if (key === 'store') Object.entries(value).forEach(([k, v]) => store(k, v));
  else if (key === 'download') download(value);
  else if (key === 'event') document.dispatchEvent(new CustomEvent(value.name, {detail: value})); }
  if (patch?.address) { history.replaceState(null, '', patch.address); show_view(); }
  if (patch?.go) rb.go(patch.go); };
rb.apply = apply;
rb.say = (text, kind = '') => { const t = document.createElement('div'); t.className = 'toast ' + kind; t.setAttribute('role', 'status'); t.textContent = text;
  $('#toasts').append(t); setTimeout(() => t.remove(), 4000 + 40 * text.length); };
const download = file => { const a = document.createElement('a');
  const bytes = file.base64 ? Uint8Array.from(atob(file.base64), c => c.charCodeAt(0)) : file.text;
  a.href = URL.createObjectURL(new Blob([bytes], {type: file.type || 'text/plain'})); a.download = file.name; a.click(); setTimeout(() => URL.revokeObjectURL(a.href), 10000); };
let opener = null;
const dialog = html => { const d = $('#dialog'); if (!html) { d.close(); return; }
  if (!d.open) opener = document.activeElement; fill(d, html); if (!d.open) d.showModal(); $('[autofocus], input:not([type=hidden]), select, textarea, button', d)?.focus(); };
const drawer = html => { const d = $('#drawer'); if (html && d.hidden) opener = document.activeElement;
  d._html = null; fill(d, html || ''); d.hidden = !html; if (html) $('input, select, textarea, button, a', d)?.focus(); else opener?.isConnected && opener.focus(); };
const close_panels = () => { const d = $('#dialog'); if (d?.open) d.close(); if ($('#drawer') && !$('#drawer').hidden) drawer(''); $$('details.menu[open]').forEach(m => m.open = false); };
rb.confirm = (text, verb) => new Promise(done => { const d = $('#confirm'); $('p', d).textContent = text; $('.yes', d).textContent = verb || 'Continue';
  let yes = false; $('.yes', d).onclick = () => { yes = true; d.close(); }; $('.no', d).onclick = () => d.close(); d.onclose = () => done(yes); d.showModal(); $('.yes', d).focus(); });

/* What new HTML needs: windowed lists, lazy parts, and what places mount. */
const mounts = [];
rb.mount = (selector, action) => mounts.push([selector, action]);
const seen = new IntersectionObserver(entries => entries.forEach(e => { if (e.isIntersecting) { seen.unobserve(e.target); press(e.target); } }));
const decorate = root => { $$('[data-list]', root).forEach(windowed); $$('[data-lazy]', root).forEach(el => seen.observe(el));
  for (const [selector, action] of mounts) $$(selector, root).forEach(action); };

/* A windowed list: rows of one height, fetched as they come into sight. */
const windowed = list => { const height = +list.dataset.row, total = +list.dataset.total, key = JSON.parse(list.dataset.key || '{}'), have = new Map(), asked = new Map();
  const pane = list.firstElementChild; pane.style.height = total * height + 'px'; let at = +list.dataset.at, drawn = '', timer = 0;
  const CHUNK = 60;
  const load = async chunk => { const answer = await server.list_rows({window: mine, list: list.dataset.list, key, start: chunk * CHUNK, count: CHUNK});
    (answer.rows || []).forEach((row, i) => have.set(chunk * CHUNK + i, row)); drawn = ''; draw(); };
  const fetch_rows = chunk => { if (!asked.has(chunk)) asked.set(chunk, load(chunk)); return asked.get(chunk); };
  const draw = () => { if (!list.isConnected) return; const first = Math.max(0, Math.floor(list.scrollTop / height) - 8), last = Math.min(total, Math.ceil((list.scrollTop + list.clientHeight) / height) + 8);
    for (let c = Math.floor(first / CHUNK); c <= Math.floor(Math.max(first, last - 1) / CHUNK) && total; c++) fetch_rows(c);
    const now = first + ' ' + last + ' ' + at; if (now === drawn) return; drawn = now; let html = '';
    for (let i = first; i < last; i++) { const row = have.get(i); html += `<div class="r${i === at ? ' on' : ''}" role="option" aria-selected="${i === at}" id="${list.id}-${i}" aria-setsize="${total}" aria-posinset="${i + 1}" data-i="${i}" style="top:${i * height}px;height:${height}px">${row ? row[1] : ''}</div>`; }
    fill(pane, html); list.drawn?.(); list.setAttribute('aria-activedescendant', at >= 0 ? list.id + '-' + at : ''); };
  list.pick = async (i, wait = 90) => { if (i < 0 || i >= total) return; at = i; list.dataset.at = i;
    const top = i * height; if (top < list.scrollTop) list.scrollTop = top; else if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
    draw(); await fetch_rows(Math.floor(i / CHUNK)); if (i !== at) return; clearTimeout(timer);
    timer = setTimeout(() => { const row = have.get(i); if (!row || !list.isConnected || !list.dataset.pick) return; rb.set('q', row[0]); rb.act(list.dataset.pick, {...key, id: row[0], index: i}, list); }, wait); };
  list.step = by => list.pick(at < 0 ? 0 : at + by);
  list.redraw = () => { asked.clear(); drawn = ''; draw(); };
  list.onscroll = () => frame(draw);
  list.onclick = ev => { const r = ev.target.closest('.r'); if (r && !ev.target.closest('a, button, input, summary')) { list.focus({preventScroll: true}); list.pick(+r.dataset.i, 0); } };
  list.onkeydown = ev => { const by = {ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10}[ev.key]; if (by) { ev.preventDefault(); list.step(by); }
    const row = ev.target === list && $('.r.on', list); if (!row) return; if (ev.key === 'Enter' && $('[data-href]', row)) rb.go($('[data-href]', row).dataset.href);
    if (ev.key === ' ' && $('input[type=checkbox]', row)) { ev.preventDefault(); $('input[type=checkbox]', row).click(); } };
  new ResizeObserver(draw).observe(list); if (at > 0) frame(() => { list.scrollTop = Math.max(0, at * height - list.clientHeight / 2); draw(); }); draw(); };

/* Keys. Single letters do nothing in a field, nor with Ctrl, Alt or Meta. */
const keys = {};
rb.key = (letter, action) => keys[letter] = action;
const typing = t => t.isContentEditable || /^(TEXTAREA|SELECT)$/.test(t.tagName) || (t.tagName === 'INPUT' && !/checkbox|radio|button/.test(t.type));
const visible = el => el && el.offsetParent !== null;
let leader = 0;
window.addEventListener('keydown', ev => { const control = ev.ctrlKey || ev.metaKey, view = $('.view:not([hidden])'), modal = $('dialog[open]');
  if (control && ev.key === 'Enter') { const run = $$('[data-primary]', modal || document).find(visible); if (run) { ev.preventDefault(); run.click(); } return; }
  if (control && ev.key === 's') { const save = $$('[data-save]', view || document).find(visible); if (save) { ev.preventDefault(); save.click(); } return; }
  if (ev.key === 'Escape' && !modal) { if (!$('#drawer').hidden) drawer(''); $$('.pop:not([hidden])').forEach(p => p.hidden = true); $$('details.menu[open]').forEach(m => { m.open = false; m.firstElementChild.focus(); }); if (typing(ev.target)) ev.target.blur(); return; }
  if (ev.key === 'Enter' && ev.target.dataset?.on === 'enter') { ev.preventDefault(); press(ev.target); return; }
  if (ev.key === 'Enter' && ev.target.dataset?.href) { rb.go(ev.target.dataset.href); return; }
  if (typing(ev.target) || control || ev.altKey || modal) return;
  if (leader && Date.now() - leader < 1500) { leader = 0; const place = Object.keys(FIRST)[+ev.key - 1]; if (place) { ev.preventDefault(); rb.go('#/' + FIRST[place]); return; } }
  if (ev.key === 'g' || ev.key === 'G') { leader = Date.now(); return; }
  const step = {j: 1, k: -1}[ev.key], list = view && $$('[data-list]', view).find(visible);
  if (step && list) { ev.preventDefault(); list.step(step); }
  else if (ev.key === '?') { const k = $('#keys'); k.hidden = !k.hidden; }
  else if (ev.key === '/') { const f = view && $$('[data-filter]', view).find(visible); if (f) { ev.preventDefault(); f.focus(); f.select?.(); } }
  else if (keys[ev.key]) keys[ev.key](ev); }, true);

/* Clicks and changes */
document.addEventListener('click', ev => { const t = ev.target;
  $$('details.menu[open]').forEach(m => { if (!m.contains(t)) m.open = false; else if (t.closest('button, a')) { m.firstElementChild.focus(); m.open = false; } });
  if (!t.closest('#jobs, #job')) $('#jobs') && ($('#jobs').hidden = true); if (!t.closest('#keys, .keys-button')) $('#keys') && ($('#keys').hidden = true);
  const stop = t.closest('[data-stop]'); if (stop) { rb.stop(stop.dataset.stop); return; }
  if (t.closest('[data-close]')) { close_panels(); return; }
  const el = t.closest('[data-do]'); if (el && !el.dataset.on && !el.dataset.lazy && !('list' in el.dataset)) { ev.preventDefault(); press(el); return; }
  const pop = t.closest('[data-pop]'); if (pop) { const p = $(pop.dataset.pop); p.hidden = !p.hidden; return; }
  const row = t.closest('[data-href]'); if (row && !t.closest('a, button, input, label, summary, select, textarea')) { if (ev.ctrlKey || ev.metaKey) window.open(row.dataset.href); else rb.go(row.dataset.href); } });
let soon = 0;
document.addEventListener('input', ev => { const el = ev.target.closest?.('[data-on=input]'); if (el) { clearTimeout(soon); soon = setTimeout(() => press(el), 200); } });
document.addEventListener('change', ev => { const el = ev.target.closest?.('[data-on=change]'); if (el) press(el);
  const box = ev.target.closest?.('[data-upload]'); if (box && ev.target.type === 'file') send_files(box, [...ev.target.files]); });
document.addEventListener('submit', ev => ev.preventDefault());
window.addEventListener('beforeunload', ev => { if ($('[data-unsaved]')) { ev.preventDefault(); ev.returnValue = ''; } });

/* Files */
const send_files = async (box, files) => { if (!files.length) return; box.setAttribute('aria-busy', 'true'); const sent = [];
  try { for (const file of files) { const {path} = await upload(file); sent.push({path, name: file.webkitRelativePath || file._path || file.name}); }
    await rb.act(box.dataset.upload, {...fields(box.closest('[data-form]')), ...attributes(box), files: sent}, box); }
  catch (error) { problem('The files could not be sent: ' + (error.message || error), box); } finally { box.removeAttribute('aria-busy'); } };
const walk = async (entry, path = '') => { if (entry.isFile) return new Promise(done => entry.file(f => { f._path = path + f.name; done([f]); }));
  const reader = entry.createReader(), all = []; for (;;) { const part = await new Promise(done => reader.readEntries(done)); if (!part.length) break; all.push(...part); }
  return (await Promise.all(all.map(e => walk(e, path + entry.name + '/')))).flat(); };
document.addEventListener('dragover', ev => { const box = ev.target.closest?.('[data-upload]'); if (box) { ev.preventDefault(); box.classList.add('over'); } });
document.addEventListener('dragleave', ev => ev.target.closest?.('[data-upload]')?.classList.remove('over'));
document.addEventListener('drop', async ev => { const box = ev.target.closest?.('[data-upload]'); if (!box) return; ev.preventDefault(); box.classList.remove('over');
  const entries = [...ev.dataTransfer.items].map(i => i.webkitGetAsEntry()).filter(Boolean); send_files(box, (await Promise.all(entries.map(e => walk(e)))).flat()); });

/* The only timer: the chip of all jobs. It rests while the page is hidden. */
let versions = null, ticking = 0;
const tick = async () => { clearTimeout(ticking); let wait = 2000;
  if (!document.hidden) try { const state = await server.jobs({window: mine}); const html = state.chip; fill($('#job'), html); $('#job').hidden = !state.any; fill($('#jobs-list'), state.list); if (state.active) wait = 1000;
    const before = versions; versions = state.versions;
    if (before) $$('[data-follow]').forEach(el => { const id = el.dataset.follow, news = id === '*' ? JSON.stringify(before) !== JSON.stringify(versions) : before[id] !== versions[id];
      if (news && visible(el)) { el._stale = false; rb.act(el.dataset.do, attributes(el), el); } });
    document.body.classList.remove('away');
  } catch { document.body.classList.add('away'); wait = 4000; }
  ticking = setTimeout(tick, wait); };
rb.tick = tick;
document.addEventListener('visibilitychange', () => { if (!document.hidden) tick(); });

/* Light or dark */
const dark = on => { document.body.classList.toggle('dark', on); document.documentElement.classList.toggle('dark', on); };
rb.dark = () => { const on = !document.body.classList.contains('dark'); dark(on); store('rb-dark', on ? '1' : '0'); };

const begin = async () => { if (!$('#frame')) return setTimeout(begin, 20);
  const chosen = store('rb-dark'); dark(chosen ? chosen === '1' : matchMedia('(prefers-color-scheme: dark)').matches);
  await identify(); await read_draft(); if (!location.hash) history.replaceState(null, '', '#/' + rb.view()); window.addEventListener('hashchange', open_view); decorate(document); await open_view(); document.body.classList.add('ready'); tick(); window.rallebenchIdle = true; };
