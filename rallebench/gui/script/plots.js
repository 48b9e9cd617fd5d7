/* Plots: the value at the pointer and at the keyboard's focus, hidden series, zoom, and files. */
const PLOT_UNITS = {share: [100, ' %'], percent: [1, ' %'], seconds: [1, ' s'], ms: [1, ' ms'], bytes: [1e-6, ' MB']};
const own_ticks = new WeakMap();
let dragged = null;

/* The words of a mark, in a box above it. The browser's own boxes go, because screen readers have the labels. */
const plot_tip = mark => {
  const tip = $('#plot-tip');
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.getAttribute('aria-label');
  const at = ($('.dot path, .dot circle[fill], .bar', mark) || mark).getBoundingClientRect();
  const [wide, tall] = [tip.offsetWidth, tip.offsetHeight];
  const left = Math.min(Math.max(at.left + at.width / 2 - wide / 2, 8), innerWidth - wide - 8);
  tip.style.left = left + 'px';
  tip.style.top = (at.top - tall - 10 > 0 ? at.top - tall - 10 : at.bottom + 10) + 'px';
};
const prepare_plot = svg => {
  if (svg.dataset.ready) return;
  svg.dataset.ready = '1';
  $$('title', svg).forEach(title => title.remove());
  $$('.mark', svg).forEach((mark, i) => mark.setAttribute('tabindex', i ? -1 : 0));
  const keys = $$('.key', svg);
  keys.forEach(key => {
    if (keys.length < 2 || !$('.series', svg)) return;
    key.setAttribute('role', 'button');
    key.setAttribute('tabindex', 0);
    key.setAttribute('aria-pressed', true);
    key.setAttribute('aria-label', key.textContent);
  });
};
const toggle_series = key => {
  const off = key.classList.toggle('off');
  key.setAttribute('aria-pressed', !off);
  const series = $$('.series', key.ownerSVGElement).find(s => s.dataset.series === key.dataset.series);
  series?.classList.toggle('off', off);
};
const step_mark = (mark, step) => {
  const marks = $$('.mark', mark.closest('.plot svg')).filter(m => !m.closest('.off'));
  const next = marks[marks.indexOf(mark) + step];
  if (!next) return;
  mark.setAttribute('tabindex', -1);
  next.setAttribute('tabindex', 0);
  next.focus();
};

/* Zoom: the view box of the area; marks keep their size, and the axes get new numbers. */
const full_size = area => [area.width.baseVal.value, area.height.baseVal.value];
const nice_step = range => {
  const power = 10 ** Math.floor(Math.log10(range / 6));
  return [1, 2, 5, 10].find(f => f * power >= (range / 6) * (1 - 1e-9)) * power;
};
const round_numbers = (low, high) => {
  const step = nice_step(high - low);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return [Array.from({length: Math.max(count, 0)}, (_, i) => (first + i) * step), step];
};
const draw_ticks = (svg, axis, from, to, place) => {
  const group = $('.ticks-' + axis, svg);
  if (!own_ticks.has(group)) own_ticks.set(group, [...group.children]);
  const own = own_ticks.get(group);
  if (from === 0 && to === 1) return group.replaceChildren(...own);
  const [first, last, kind, unit] = svg.dataset['zoom' + axis.toUpperCase()].split(' ');
  const ends = [+first, +last].map(v => (kind === 'log' ? Math.log10(v) : v));
  const at = share => ends[0] + (ends[1] - ends[0]) * share;
  const value = v => (kind === 'log' ? 10 ** v : v);
  const [factor, suffix] = PLOT_UNITS[unit] || [1, ''];
  const [numbers, step] = round_numbers(factor * value(at(from)), factor * value(at(to)));
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const format = {minimumFractionDigits: digits, maximumFractionDigits: digits};
  const ticks = numbers.map(number => {
    const tick = own[0].cloneNode(true);
    const plain = kind === 'log' ? Math.log10(number / factor) : number / factor;
    const share = (plain - at(from)) / (at(to) - at(from));
    tick.setAttribute('transform', place(share));
    $('text', tick).textContent = number.toLocaleString('en-US', format) + suffix;
    return tick;
  });
  return group.replaceChildren(...ticks);
};
const set_view = (svg, x, y, w, h) => {
  const area = $('.area', svg);
  const [wide, tall] = full_size(area);
  const [left, top] = [area.x.baseVal.value, area.y.baseVal.value];
  [w, h] = [Math.min(Math.max(w, wide / 500), wide), Math.min(Math.max(h, tall / 500), tall)];
  [x, y] = [Math.min(Math.max(x, 0), wide - w), Math.min(Math.max(y, 0), tall - h)];
  area.setAttribute('viewBox', [x, y, w, h].join(' '));
  area.setAttribute('overflow', w < wide || h < tall ? 'hidden' : 'visible');
  $$('.dot', area).forEach(dot => dot.setAttribute('transform', `scale(${w / wide} ${h / tall})`));
  draw_ticks(svg, 'x', x / wide, (x + w) / wide, s => `translate(${left + wide * s} ${top + tall})`);
  draw_ticks(svg, 'y', 1 - (y + h) / tall, 1 - y / tall, s => `translate(${left} ${top + tall * (1 - s)})`);
  plot_tip(null);
};
const zoom_plot = (svg, how) => {
  if (!svg?.dataset.zoomX) return;
  const area = $('.area', svg);
  if (how === 'reset') return set_view(svg, 0, 0, ...full_size(area));
  const {x, y, width, height} = area.viewBox.baseVal;
  const by = how === 'in' ? 0.5 : 2;
  set_view(svg, x + (width * (1 - by)) / 2, y + (height * (1 - by)) / 2, width * by, height * by);
};
const area_point = (area, ev) => new DOMPoint(ev.clientX, ev.clientY).matrixTransform(area.getScreenCTM().inverse());
const drag_box = (area, ev) => {
  const [a, b] = [dragged.from, area_point(area, ev)];
  return {x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y)};
};

/* Files: the plot in the colours of files, without hidden series. */
const save_blob = (blob, name) => {
  const a = document.createElement('a');
  a.href = URL.createObjectURL(blob);
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
};
const plain_plot = svg => {
  const copy = svg.cloneNode(true);
  $$('.off', copy).forEach(part => part.remove());
  $$('.mark', copy).forEach(mark => {
    mark.removeAttribute('href');
    if ($('title', mark)) return;
    const title = document.createElementNS('http://www.w3.org/2000/svg', 'title');
    title.textContent = mark.getAttribute('aria-label');
    mark.prepend(title);
  });
  const text = new XMLSerializer().serializeToString(copy);
  return text.replace(/var\(--[\w-]+, ?(#\w+)\)/g, '$1');
};
const save_plot = async (svg, name, shape) => {
  const file = new Blob([plain_plot(svg)], {type: 'image/svg+xml'});
  if (shape === 'svg') return save_blob(file, name + '.svg');
  const image = new Image();
  image.src = URL.createObjectURL(file);
  await image.decode();
  const {width, height} = svg.viewBox.baseVal;
  const canvas = Object.assign(document.createElement('canvas'), {width: 2 * width, height: 2 * height});
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return canvas.toBlob(blob => save_blob(blob, name + '.png'));
};

for (const kind of ['pointerover', 'focusin'])
  document.addEventListener(kind, ev => {
    const svg = ev.target.closest?.('.plot svg[role=group]');
    if (svg) prepare_plot(svg);
    if (!dragged) plot_tip(svg && ev.target.closest('.mark'));
  });
document.addEventListener('focusout', ev => ev.target.closest?.('.mark') && plot_tip(null));
document.addEventListener('scroll', () => plot_tip(null), true);
document.addEventListener('pointerdown', ev => {
  const svg = ev.target.closest?.('.plot svg[data-zoom-x]');
  if (!svg || ev.button || ev.pointerType === 'touch') return;
  const box = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  box.setAttribute('class', 'zoom-box');
  dragged = {svg, box, from: area_point($('.area', svg), ev), start: ev};
});
document.addEventListener('pointermove', ev => {
  if (!dragged || Math.hypot(ev.clientX - dragged.start.clientX, ev.clientY - dragged.start.clientY) < 6) return;
  const area = $('.area', dragged.svg);
  if (!dragged.box.isConnected) area.append(dragged.box);
  Object.entries(drag_box(area, ev)).forEach(([key, size]) => dragged.box.setAttribute(key, size));
});
document.addEventListener('pointerup', ev => {
  const {svg, box} = dragged || {};
  if (box?.isConnected) {
    const part = drag_box($('.area', svg), ev);
    box.remove();
    if (part.width && part.height) set_view(svg, part.x, part.y, part.width, part.height);
    addEventListener('click', click => click.preventDefault(), {capture: true, once: true});
  }
  dragged = null;
});
document.addEventListener('dragstart', ev => dragged && ev.preventDefault());
document.addEventListener('dblclick', ev => zoom_plot(ev.target.closest?.('.plot svg[data-zoom-x]'), 'reset'));
document.addEventListener('click', ev => {
  const key = ev.target.closest?.('.plot .key[role=button]');
  if (key) toggle_series(key);
  const button = ev.target.closest?.('[data-plot-zoom], [data-plot-save]');
  if (!button) return;
  const {plotZoom: how, plotSave: shape, name} = button.dataset;
  const svg = $('svg[role=group]', button.closest('.plot'));
  if (how) return zoom_plot(svg, how);
  save_plot(svg, name, shape).catch(() => problem('The browser could not draw the file: save the plot as SVG.', button));
});
document.addEventListener('keydown', ev => {
  const part = ev.target.closest?.('.plot .mark, .plot .key');
  if (!part || ev.ctrlKey || ev.metaKey || ev.altKey) return;
  const step = {ArrowRight: 1, ArrowLeft: -1}[ev.key];
  const how = {'+': 'in', '-': 'out', 0: 'reset'}[ev.key];
  if (part.matches('.key') && [' ', 'Enter'].includes(ev.key)) toggle_series(part);
  else if (step && part.matches('.mark')) step_mark(part, step);
  else if (how) zoom_plot(part.closest('svg[role=group]'), how);
  else return;
  ev.preventDefault();
});
