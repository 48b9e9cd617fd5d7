/* Copies texts, and tables as tab-separated values, Markdown or LaTeX. */
const put_in_clipboard = async text => {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea'); // over plain HTTP from another machine there is no clipboard
  area.value = text;
  area.style.position = 'fixed';
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  if (!done) throw Error('the browser refused');
};
const cell_text = cell => {
  const copy = cell.cloneNode(true);
  $$('[role=img][aria-label]', copy).forEach(mark =>
    mark.replaceWith(mark.getAttribute('aria-label') + ' '),
  );
  $$('.raw, .copy, .menu, svg', copy).forEach(part => part.remove());
  $$('small', copy).forEach(part => part.prepend(' '));
  return copy.textContent.replace(/\s+/g, ' ').trim();
};
const cells_of = table =>
  $$('tr', table)
    .filter(row => row.closest('table') === table)
    .map(row => [...row.cells].map(cell_text));
const LATEX = {
  '\\': '\\textbackslash{}',
  '~': '\\textasciitilde{}',
  '^': '\\textasciicircum{}',
  '−': '$-$',
  '±': '$\\pm$',
  '·': '$\\cdot$',
  '–': '--',
};
const latex_text = text => text.replace(/[\\{}$&%#_~^−±·–]/g, sign => LATEX[sign] || '\\' + sign);
const TABLES = {
  tsv: rows => rows.map(row => row.join('\t')).join('\n'),
  markdown: ([head, ...body]) => {
    const line = row => '| ' + row.map(cell => cell.replace(/\|/g, '\\|')).join(' | ') + ' |';
    return [line(head), '|' + head.map(() => '---|').join(''), ...body.map(line)].join('\n');
  },
  latex: ([head, ...body]) => {
    const line = row => row.map(latex_text).join(' & ') + ' \\\\';
    const columns = 'l' + 'r'.repeat(head.length - 1);
    return [
      `\\begin{tabular}{${columns}}`, '\\toprule', line(head), '\\midrule',
      ...body.map(line), '\\bottomrule', '\\end{tabular}',
    ].join('\n');
  },
};
const copied_text = button => {
  if (button.dataset.copy === 'link') return location.href;
  const box = button.closest('.copyable');
  const shape = button.dataset.copy;
  if (TABLES[shape]) return TABLES[shape](cells_of($('table', box)));
  const raw = $('.raw pre', box);
  if (raw) return raw.textContent;
  const copy = box.cloneNode(true);
  $$('.copy, .cite', copy).forEach(part => part.remove());
  return copy.textContent.trim();
};
document.addEventListener('click', async ev => {
  const button = ev.target.closest?.('[data-copy]');
  if (!button) return;
  try {
    await put_in_clipboard(copied_text(button));
    rb.say('Copied');
  } catch (error) {
    problem('The browser did not permit copying: select the text and press Ctrl C.', button);
  }
});
