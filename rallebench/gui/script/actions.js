/* Sends the user's actions with the fields around the pressed element, and dropped or chosen files. */
const fields = (root, data = {}) => {
  if (!root) return data;
  const put = (name, value) => {
    data[name] = name in data ? [].concat(data[name], value) : value;
  };
  $$('input[name], select[name], textarea[name]', root).forEach(f => {
    if (f.disabled || f.closest('template')) return;
    if (f.type === 'file') return;
    if (f.type === 'checkbox' || f.type === 'radio') {
      if (f.checked) put(f.name, f.value);
    } else if (f.multiple) {
      data[f.name] = [...f.selectedOptions].map(o => o.value);
    } else {
      put(f.name, f.value);
    }
  });
  return data;
};
rb.fields = fields;
const OWN = 'do on confirm with tip follow form lazy upload unsaved stop'.split(' ');
const attributes = el => {
  const data = {};
  for (const [key, value] of Object.entries(el.dataset)) {
    const name = key.replace(/[A-Z]/g, letter => '_' + letter.toLowerCase());
    if (!OWN.includes(key)) data[name] = value;
  }
  return data;
};
const press = async el => {
  if (el.getAttribute('aria-disabled') === 'true') return;
  const {confirm, confirmVerb} = el.dataset;
  if (confirm && !(await rb.confirm(confirm, confirmVerb || el.textContent.trim()))) return;
  const data = fields(el.closest('[data-form]'));
  if (el.dataset.with) fields($(el.dataset.with), data);
  if (el.name && !(el.name in data)) data[el.name] = el.value;
  const patch = await rb.act(el.dataset.do, {...data, ...attributes(el)}, el);
  if (el.matches('button')) tick(); // a job that has begun shows at once
  return patch;
};
/* Answers can come out of order. Once a newer change of the same form was sent, or another view was opened, the older
   answer is dropped. */
const newest = new Map();
const overtaken = (action, origin) => {
  const opens = action === 'open';
  if (!opens && !origin?.matches?.('input, select, textarea, [data-form]')) return () => false;
  const key = opens ? action : action + JSON.stringify(attributes(origin));
  const number = (newest.get(key) || 0) + 1;
  newest.set(key, number);
  return () => newest.get(key) !== number;
};
let sent = Date.now(); // of all messages of a window, also after a reload, the newest has the largest number
let pending = 0;
rb.idle = () => pending === 0; // the browser's benchmark waits for it
rb.act = async (action, data = {}, origin = null) => {
  const place =
    origin?.closest?.('[data-problems], [data-form], dialog, .drawer, .view') ||
    $('.view:not([hidden])');
  if (!origin?.matches?.('[data-follow], [data-lazy]')) {
    wake();
    // An edit keeps the problems of earlier actions; its own answer removes them.
    if (action !== 'build.edit') clear_problems(place?.closest('dialog, .drawer, .view') || document);
  }
  const busy = setTimeout(() => origin?.setAttribute?.('aria-busy', 'true'), 150);
  const message = {window: mine, number: ++sent, action, data, query: rb.query()};
  const late = overtaken(action, origin);
  pending++;
  try {
    let patch = await server.act(message);
    if (!late()) apply(patch, place);
    while (patch.stream || patch.following) {
      const id = patch.stream || patch.following;
      patch = await server.more({window: mine, stream: id});
      if (!late()) apply(patch, place);
      if (!patch.over) patch.following = id;
    }
    return patch;
  } catch (error) {
    console.error(error);
    if (late()) return {};
    problem(
      'The program does not answer. Is rallebench still running? Start it again, then reload the page.',
      place,
    );
    return {};
  } finally {
    pending--;
    clearTimeout(busy);
    origin?.removeAttribute?.('aria-busy');
  }
};
rb.stop = action => server.stop({window: mine, action});

/* Files */
const send_files = async (box, files) => {
  if (!files.length) return;
  box.setAttribute('aria-busy', 'true');
  const sent = [];
  try {
    for (const file of files) {
      const {path} = await upload(file);
      sent.push({path, name: file.webkitRelativePath || file._path || file.name});
    }
    await rb.act(
      box.dataset.upload,
      {...fields(box.closest('[data-form]')), ...attributes(box), files: sent},
      box,
    );
  } catch (error) {
    problem('The files could not be sent: ' + (error.message || error), box);
  } finally {
    box.removeAttribute('aria-busy');
  }
};
const walk = async (entry, path = '') => {
  if (entry.isFile)
    return new Promise(done =>
      entry.file(f => {
        f._path = path + f.name;
        done([f]);
      }),
    );
  const reader = entry.createReader();
  const all = [];
  for (;;) {
    const part = await new Promise(done => reader.readEntries(done));
    if (!part.length) break;
    all.push(...part);
  }
  return (await Promise.all(all.map(e => walk(e, path + entry.name + '/')))).flat();
};
document.addEventListener('dragover', ev => {
  const box = ev.target.closest?.('[data-upload]');
  if (box) {
    ev.preventDefault();
    box.classList.add('over');
  }
});
document.addEventListener('dragleave', ev =>
  ev.target.closest?.('[data-upload]')?.classList.remove('over'),
);
document.addEventListener('drop', async ev => {
  const box = ev.target.closest?.('[data-upload]');
  if (!box) return;
  ev.preventDefault();
  box.classList.remove('over');
  const entries = [...ev.dataTransfer.items].map(i => i.webkitGetAsEntry()).filter(Boolean);
  send_files(box, (await Promise.all(entries.map(e => walk(e)))).flat());
});
