/* The frame's script. Python answers every action with a patch (see patches.py); nothing here knows a place. */
const rb = (window.rb = {});
const frame = window.rallebenchFrame || window.requestAnimationFrame.bind(window);
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const store = (key, value) => {
  try {
    if (value === undefined) return localStorage.getItem(key);
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    /* the browser keeps nothing */
  }
  return null;
};

/* A window's identity survives a reload; a duplicated window gets its own. */
let mine = '';
const channel = new BroadcastChannel('rallebench');
const self_id = Math.random().toString(36).slice(2);
const waiting = {};
channel.onmessage = ev => {
  if (ev.data.ask && ev.data.ask === mine && ev.data.from !== self_id)
    channel.postMessage({taken: mine, to: ev.data.from});
  if (ev.data.taken && ev.data.to === self_id) waiting[ev.data.taken]?.(true);
};
const is_open = id =>
  new Promise(done => {
    waiting[id] = done;
    channel.postMessage({ask: id, from: self_id});
    setTimeout(() => done(false), 60);
  });
const identify = async () => {
  mine = sessionStorage.getItem('rb-window') || '';
  if (mine && (await is_open(mine))) mine = '';
  if (!mine)
    mine = [...crypto.getRandomValues(new Uint8Array(16))]
      .map(b => b.toString(16).padStart(2, '0'))
      .join('');
  sessionStorage.setItem('rb-window', mine);
  rb.window = mine;
};

/* The edited chain that a crash left behind: of this window, or of one that is gone. It is sent once. */
let draft = '';
const read_draft = async () => {
  const text = store('rb-draft');
  if (!text) return;
  try {
    const owner = JSON.parse(text).window;
    if (owner === mine || !(await is_open(owner))) draft = text;
  } catch {
    store('rb-draft', null);
  }
};

/* Addresses: #/place/view?key=value */
rb.view = () => {
  const [place, view] = location.hash.replace(/^#\/?/, '').split('?')[0].split('/');
  const first = FIRST[place] || FIRST[Object.keys(FIRST)[0]];
  return FIRST[place] && view ? place + '/' + view : first;
};
rb.query = () => Object.fromEntries(new URLSearchParams(location.hash.split('?')[1] || ''));
rb.go = address => {
  if (location.hash === address) open_view();
  else location.hash = address;
};
rb.set = (key, value) => {
  const query = new URLSearchParams(location.hash.split('?')[1] || '');
  if (value === null || value === '') query.delete(key);
  else query.set(key, value);
  const text = query.toString();
  history.replaceState(history.state, '', '#/' + rb.view() + (text ? '?' + text : ''));
};
const show_view = () => {
  const view = rb.view();
  const place = view.split('/')[0];
  $$('.view').forEach(v => (v.hidden = v.id !== 'v-' + view.replace('/', '-')));
  $$('[data-place]').forEach(a => {
    const on = a.dataset.place === place;
    a.classList.toggle('on', on);
    a.setAttribute('aria-selected', on);
  });
  return view;
};
/* Done when the view of the newest address is drawn. Until then its buttons are those of the previous address. */
let drawn = Promise.resolve();
const open_view = () => {
  close_panels();
  const view = show_view();
  const data = {view};
  if (draft && view === 'build/one') {
    data.draft = draft;
    draft = '';
  }
  let done;
  drawn = new Promise(resolve => (done = resolve));
  const first = () => {
    done();
    if (rb.query().trace) open_trace(null);
  };
  return rb.act('open', data, $('#v-' + view.replace('/', '-')), first).finally(done);
};

/* The only timer: the chip of all jobs. It rests while the page is hidden, and asks less often while nothing is done. */
const REST = 5000;
let versions = null;
let ticking = 0;
let wait = 0;
let acted = 0;
const wake = () => {
  acted = Date.now();
  if (wait === REST) tick();
};
const follow = (before, now) => {
  const any = JSON.stringify(before) !== JSON.stringify(now);
  $$('[data-follow]').forEach(el => {
    const job = el.dataset.follow;
    const news = job === '*' ? any : before[job] !== now[job];
    if (news && visible(el)) rb.act(el.dataset.do, attributes(el), el);
  });
};
/* After a restart the program knows nothing of this window: its view is opened again, with the edits that the browser keeps. */
let program = '';
const recover = async () => {
  versions = null;
  await read_draft();
  rb.say('The program was restarted; this view shows its present state.');
  open_view();
};
const ask_jobs = async () => {
  const state = await call('jobs', {});
  if (!state.versions) throw Error('the program refused the question for its jobs');
  const is_other = program && state.program !== program;
  program = state.program;
  if (is_other) await recover();
  fill($('#job'), state.chip);
  $('#job').hidden = !state.any;
  fill($('#jobs-list'), state.list);
  const before = versions;
  versions = state.versions;
  if (before) follow(before, versions);
  if (state.active) return 1000;
  return Date.now() - acted < 10000 ? 2000 : REST;
};
const tick = async () => {
  clearTimeout(ticking);
  wait = 2000;
  try {
    if (!document.hidden) wait = await ask_jobs();
    document.body.classList.remove('away');
  } catch {
    document.body.classList.add('away');
    wait = 4000;
  }
  clearTimeout(ticking); // another question may have been asked meanwhile: one timer is enough
  ticking = setTimeout(tick, wait);
};
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) tick();
});

/* Light or dark */
const dark = on => {
  document.body.classList.toggle('dark', on);
  document.documentElement.classList.toggle('dark', on);
};
rb.dark = () => {
  const on = !document.body.classList.contains('dark');
  dark(on);
  store('rb-dark', on ? '1' : '0');
};

const begin = async () => {
  if (!$('#frame')) return setTimeout(begin, 20);
  const chosen = store('rb-dark');
  dark(chosen ? chosen === '1' : matchMedia('(prefers-color-scheme: dark)').matches);
  await identify();
  await read_draft();
  if (!location.hash) history.replaceState(null, '', '#/' + rb.view());
  window.addEventListener('hashchange', follow_address);
  decorate(document);
  const first = open_view(); // a model that hangs must not keep the jobs from showing
  document.body.classList.add('ready');
  tick();
  await first;
  window.rallebenchIdle = true;
};
