/* A windowed list: rows of one height, fetched as they come into sight. */
const CHUNK = 60;
/* One observer for all lists: one of each list would keep the list, which its callback names, after it has left the page. */
const sized = new ResizeObserver(entries =>
  entries.forEach(({target}) => (target.isConnected ? target.draw() : sized.unobserve(target))),
);
const windowed = list => {
  const height = +list.dataset.row;
  const total = +list.dataset.total;
  const key = JSON.parse(list.dataset.key || '{}');
  const have = new Map();
  const asked = new Map();
  const pane = list.firstElementChild;
  pane.style.height = total * height + 'px';
  let at = +list.dataset.at;
  let drawn = '';
  let timer = 0;
  const load = async chunk => {
    const wanted = {list: list.dataset.list, key, start: chunk * CHUNK, count: CHUNK};
    const answer = await call('list_rows', wanted).catch(() => null);
    if (!answer) {
      asked.delete(chunk);
      return;
    }
    (answer.rows || []).forEach((row, i) => have.set(chunk * CHUNK + i, row));
    drawn = '';
    draw_soon();
  };
  const fetch_rows = chunk => {
    if (!asked.has(chunk)) asked.set(chunk, load(chunk));
    return asked.get(chunk);
  };
  /* Once a frame: a list that is drawn reads the layout of the whole page. */
  let planned = false;
  const draw_soon = () => {
    if (!planned) frame(draw);
    planned = true;
  };
  const draw = () => {
    planned = false;
    if (!list.isConnected) return;
    const bottom = list.scrollTop + list.clientHeight;
    const first = Math.max(0, Math.floor(list.scrollTop / height) - 8);
    const last = Math.min(total, Math.ceil(bottom / height) + 8);
    const end = Math.floor(Math.max(first, last - 1) / CHUNK);
    for (let c = Math.floor(first / CHUNK); c <= end && total; c++) fetch_rows(c);
    const now = first + ' ' + last + ' ' + at;
    if (now === drawn) return;
    drawn = now;
    let html = '';
    for (let i = first; i < last; i++) {
      const row = have.get(i);
      const on = i === at;
      const about = list.dataset.pick
        ? `role="option" aria-selected="${on}" aria-setsize="${total}" aria-posinset="${i + 1}"`
        : `role="group" aria-label="${i + 1} of ${total}"`;
      html +=
        `<div class="r${on ? ' on' : ''}" ${about} id="${list.id}-${i}" data-i="${i}" ` +
        `style="top:${i * height}px;height:${height}px">${row ? row[1] : ''}</div>`;
    }
    fill(pane, html);
    list.drawn?.();
    list.setAttribute('aria-activedescendant', at >= 0 ? list.id + '-' + at : '');
  };
  list.pick = async (i, wait = 90) => {
    if (i < 0 || i >= total) return;
    at = i;
    list.dataset.at = i;
    const top = i * height;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + height > list.scrollTop + list.clientHeight)
      list.scrollTop = top + height - list.clientHeight;
    draw();
    await fetch_rows(Math.floor(i / CHUNK));
    if (i !== at) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      const row = have.get(i);
      if (!row || !list.isConnected || !list.dataset.pick) return;
      rb.set('q', row[0]);
      rb.act(list.dataset.pick, {...key, id: row[0], index: i}, list);
    }, wait);
  };
  list.step = by => list.pick(at < 0 ? 0 : at + by);
  list.redraw = () => {
    asked.clear();
    drawn = '';
    draw_soon();
  };
  list.onscroll = draw_soon;
  list.onclick = ev => {
    const r = ev.target.closest('.r');
    if (r && !ev.target.closest('a, button, input, summary')) {
      list.focus({preventScroll: true});
      list.pick(+r.dataset.i, 0);
    }
  };
  list.onkeydown = ev => {
    const by = {ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10}[ev.key];
    if (by) {
      ev.preventDefault();
      list.step(by);
    }
    const row = ev.target === list && $('.r.on', list);
    if (!row) return;
    if (ev.key === 'Enter' && $('[data-href]', row)) rb.go($('[data-href]', row).dataset.href);
    else if (ev.key === 'Enter') $('[aria-expanded]', row)?.click(); // a group
    if (ev.key === ' ' && $('input[type=checkbox]', row)) {
      ev.preventDefault();
      $('input[type=checkbox]', row).click();
    }
  };
  list.draw = draw;
  sized.observe(list);
  if (at > 0)
    frame(() => {
      list.scrollTop = Math.max(0, at * height - list.clientHeight / 2);
      draw();
    });
  draw();
};
/* Suggestions of a filter for the word at the cursor: names of columns, and after a colon the column's values. */
const quoted = text => (/[\s"]/.test(text) ? '"' + text.replace(/["\\]/g, '\\$&') + '"' : text);
const suggestions = (offers, word) => {
  const sign = word.startsWith('-') ? '-' : '';
  const [name, value] = word.slice(sign.length).split(':');
  const column = Object.keys(offers).find(key => key.toLowerCase() === name.toLowerCase());
  if (value !== undefined) return (offers[column] || []).map(text => sign + quoted(column) + ':' + quoted(text));
  return Object.keys(offers).map(key => sign + quoted(key) + (offers[key].length ? ':' : '<'));
};
rb.mount('datalist[data-offers]', list => {
  const offers = JSON.parse(list.dataset.offers);
  const field = list.previousElementSibling;
  field.setAttribute('list', list.id);
  const suggest = () => {
    const before = field.value.slice(0, field.selectionStart ?? field.value.length);
    const word = before.match(/\S*$/)[0];
    const begins = text => text.toLowerCase().startsWith(word.toLowerCase()) && text !== word;
    const option = text => {
      const o = document.createElement('option');
      o.value = before.slice(0, before.length - word.length) + text;
      return o;
    };
    list.replaceChildren(...suggestions(offers, word).filter(begins).slice(0, 40).map(option));
  };
  field.addEventListener('input', suggest);
  field.addEventListener('focus', suggest);
});
