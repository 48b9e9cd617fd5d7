/* Sends the user's actions with the fields around the pressed element, and dropped or chosen files. */
const fields = (root, data = {}) => {
  if (!root) return data;
  $$('textarea[data-editor=on]', root).forEach(area => area.write_field());
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
      f._sent = f.value;
    }
  });
  return data;
};
rb.fields = fields;
const OWN = 'do on key turn confirm with tip follow form lazy upload unsaved stop'.split(' ');
const attributes = el => {
  const data = {};
  for (const [key, value] of Object.entries(el.dataset)) {
    const name = key.replace(/[A-Z]/g, letter => '_' + letter.toLowerCase());
    if (!OWN.includes(key)) data[name] = value;
  }
  return data;
};
/* The element once its view is drawn: the same one, or its successor; undefined if the new view has none. */
const settled = async el => {
  if (!el.closest('.view')) return el;
  const name = identity(el);
  await drawn;
  return el.isConnected ? el : $$(el.tagName).find(other => identity(other) === name);
};
/* ``first``: called when the first patch is on the page. */
const press = async (clicked, first = null) => {
  const el = await settled(clicked);
  if (!el) return {};
  if (el.getAttribute('aria-disabled') === 'true') return;
  const {confirm, confirmVerb} = el.dataset;
  if (confirm && !(await rb.confirm(confirm, confirmVerb || el.textContent.trim()))) return;
  const data = fields(el.closest('[data-form]'));
  if (el.dataset.with) fields($(el.dataset.with), data);
  if (el.name && !(el.name in data)) data[el.name] = el.value;
  const patch = await rb.act(el.dataset.do, {...data, ...attributes(el)}, el, first);
  if (el.matches('button')) tick(); // a job that has begun shows at once
  return patch;
};
/* Answers can come out of order. Once a newer change of the same form was sent, or another view was opened, the older
   answer is dropped. */
const newest = new Map();
const overtaken = (action, origin) => {
  const opens = action === 'open';
  const {trace} = rb.query();
  if (action === 'trace.open') return () => rb.query().trace !== trace;
  if (!opens && !origin?.matches?.('input, select, textarea, [data-form], [data-on=edit]')) return () => false;
  const key = opens ? action : action + JSON.stringify(attributes(origin));
  const number = (newest.get(key) || 0) + 1;
  newest.set(key, number);
  return () => newest.get(key) !== number;
};
/* A call of the program. Gradio's script answers with undefined if the program cannot be reached. */
const call = async (name, message) => {
  const answer = await server[name]({window: mine, ...message});
  if (!answer || typeof answer !== 'object') throw Error('no answer to ' + name);
  return answer;
};
let sent = Date.now(); // of all messages of a window, also after a reload, the newest has the largest number
let pending = 0;
rb.idle = () => pending === 0; // the browser's benchmark waits for it
/* ``first``: called when the first patch is on the page. */
rb.act = async (action, data = {}, origin = null, first = null) => {
  const place =
    origin?.closest?.('[data-problems], [data-form], dialog, .drawer, .view') ||
    $('.view:not([hidden])');
  if (!origin?.matches?.('[data-follow], [data-lazy]')) {
    wake();
    // An edit keeps the problems of earlier actions; its own answer removes them.
    if (action !== 'build.edit') clear_problems(place?.closest('dialog, .drawer, .view') || document);
  }
  const busy = setTimeout(() => origin?.setAttribute?.('aria-busy', 'true'), 150);
  const message = {number: ++sent, action, data, query: rb.query()};
  const late = overtaken(action, origin);
  const show = patch => {
    if (late()) return;
    apply(patch, place);
    if (!patch.stream) keep_focus();
    if (first && !patch.stream) first();
    if (!patch.stream) first = null;
  };
  pending++;
  try {
    let patch = await call('act', message);
    show(patch);
    while (patch.stream || patch.following) {
      const id = patch.stream || patch.following;
      patch = await call('more', {stream: id});
      show(patch);
      if (!patch.over) patch.following = id;
    }
    return patch;
  } catch (error) {
    console.warn(error);
    await tick(); // says so at the top if the program is gone, and goes on once it answers again
    if (!late() && !document.body.classList.contains('away')) problem('The program did not answer; try again.', place);
    return {};
  } finally {
    pending--;
    clearTimeout(busy);
    origin?.removeAttribute?.('aria-busy');
    keep_focus();
  }
};
rb.stop = action => call('stop', {action}).catch(tick);

/* Files: dropped, pasted or chosen, and sent as Gradio's components send theirs. */
const AT_ONCE = 4; // files that are sent at the same time
const sending = box => {
  const words = document.createElement('span');
  const bar = document.createElement('progress');
  const area = document.createElement('span');
  words.setAttribute('role', 'status');
  area.className = 'sending';
  area.append(words, bar);
  box.append(area);
  return {
    show: (done, total, share) => {
      words.textContent = total === 1 ? 'Sending the file …' : `Sending file ${Math.min(done + 1, total)} of ${total} …`;
      if (done) bar.value = share;
    },
    end: () => area.remove(),
  };
};
const send_all = async (files, show) => {
  const sent = [];
  const size = files.reduce((sum, file) => sum + file.size, 0) || 1;
  let next = 0;
  let done = 0;
  let bytes = 0;
  show(0, files.length, 0);
  const send = async () => {
    while (next < files.length) {
      const at = next++;
      const file = files[at];
      const {path} = await upload(file);
      sent[at] = {path, name: file.webkitRelativePath || file._path || file.name};
      bytes += file.size;
      show(++done, files.length, bytes / size);
    }
  };
  await Promise.all(Array.from({length: AT_ONCE}, send));
  return sent;
};
/* ``find``: a promise of the files, since a dropped folder is listed first. */
const send_files = async (box, find) => {
  if (box.getAttribute('aria-disabled') === 'true' || box.getAttribute('aria-busy') === 'true') return;
  box.setAttribute('aria-busy', 'true');
  const news = sending(box);
  try {
    const files = (await find).filter(file => !hidden(file));
    if (!files.length) return;
    const sent = await send_all(files, news.show);
    await rb.act(
      box.dataset.upload,
      {...fields(box.closest('[data-form]')), ...attributes(box), files: sent},
      box,
    );
  } catch (error) {
    problem('The files could not be sent: ' + (error.message || error), box);
  } finally {
    news.end();
    box.removeAttribute('aria-busy');
  }
};
/* Folders hold files of editors and systems, such as .git and .DS_Store. */
const hidden = file => /(^|\/)\./.test(file.webkitRelativePath || file._path || '');
const walk = async (entry, path = '') => {
  if (entry.isFile) {
    const f = await new Promise((done, failed) => entry.file(done, failed));
    f._path = path + f.name;
    return [f];
  }
  const reader = entry.createReader();
  const all = [];
  for (;;) {
    const part = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (!part.length) break;
    all.push(...part.filter(e => !e.name.startsWith('.')));
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
document.addEventListener('drop', ev => {
  const box = ev.target.closest?.('[data-upload]');
  if (!box) return;
  ev.preventDefault();
  box.classList.remove('over');
  const entries = [...ev.dataTransfer.items].map(i => i.webkitGetAsEntry()).filter(Boolean);
  send_files(box, Promise.all(entries.map(e => walk(e))).then(found => found.flat()));
});
document.addEventListener('paste', ev => {
  const box = ev.target.closest?.('[data-upload]') || $$('[data-upload]').find(visible);
  const files = [...(ev.clipboardData?.files || [])];
  if (!box || !files.length) return;
  ev.preventDefault();
  send_files(box, files);
});
