/* A select that is part of the address: data-go="by" sets ?by=… and opens the view again. */
rb.mount('select[data-go]', el => {
  el.onchange = () => {
    rb.set(el.dataset.go, el.value);
    rb.go(location.hash);
  };
});
