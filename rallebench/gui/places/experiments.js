/* A select that is part of the address: data-go="by" sets ?by=… and opens the view again. */
rb.mount('select[data-go]', el => {
  el.onchange = () => {
    rb.set(el.dataset.go, el.value);
    rb.go(location.hash);
  };
});

/* A printed table is sorted by the column whose head is pressed: largest first, then smallest; empty cells stay last. */
rb.mount('table.x-paper', table => {
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, index) => {
    const text = row.cells[index].textContent.trim();
    const figure = parseFloat(text.replace('−', '-').replace(/,/g, ''));
    return text === '–' ? null : Number.isNaN(figure) ? text.toLowerCase() : figure;
  };
  heads.forEach((head, index) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.title = `Sort by ${head.textContent}`;
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const numbers = head.classList.contains('n');
      const before = head.getAttribute('aria-sort');
      const up = before ? before === 'descending' : !numbers;
      heads.forEach(other => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      const rows = [...table.tBodies[0].rows].map(row => [key(row, index), row]);
      rows.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        return (up ? 1 : -1) * (a < b ? -1 : a > b ? 1 : 0);
      });
      table.tBodies[0].append(...rows.map(([, row]) => row));
    };
  });
});
