/* The trace of a question in the drawer of any view. It is a part of the address (trace=RUN:QUESTION), so a link opens it and
   Back closes it. */
const without_trace = address => {
  const [view, query] = address.split('#')[1]?.split('?') || [''];
  const values = new URLSearchParams(query);
  values.delete('trace');
  return view + '?' + values;
};
const address_with_trace = trace => {
  const [view, query] = location.hash.split('?');
  const rest = (query || '').split('&').filter(part => part && !part.startsWith('trace='));
  const own = 'trace=' + encodeURIComponent(trace).replace(/%3A/g, ':').replace(/%2C/g, ',');
  return (view || '#/' + rb.view()) + '?' + [...rest, own].join('&');
};
const open_trace = origin => rb.act('trace.open', {view: rb.view()}, origin);
const show_trace = (trace, origin) => {
  const address = address_with_trace(trace);
  if (rb.query().trace) history.replaceState(history.state, '', address);
  else history.pushState({trace: true}, '', address);
  return open_trace(origin);
};
/* The address after the drawer was closed or has got another content. */
const leave_trace = () => {
  if (!rb.query().trace) return;
  if (history.state?.trace) history.back();
  else rb.set('trace', null);
};
/* Of two addresses of one view, only the traces differ: the view stays as it is. */
const follow_address = ev => {
  if (without_trace(ev.oldURL) !== without_trace(ev.newURL)) return open_view();
  if (rb.query().trace) return open_trace(null);
  return drawer('');
};
const open_door = (door, ev) => {
  if (ev.ctrlKey || ev.metaKey) window.open(address_with_trace(door.dataset.trace));
  else show_trace(door.dataset.trace, door);
};
/* J and K go on in the list of the open trace. */
const step_trace = key => {
  const open = $('#drawer:not([hidden]) [data-trace-open]');
  $('[data-letter="' + key + '"]', open || document)?.click();
  return Boolean(open);
};
