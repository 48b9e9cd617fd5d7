/* Turns the templates of a chain into CodeMirror editors. The text field stays the form's only copy of the text, so
   nothing else knows of the editor; without the vendored file, the field itself is edited. */
const vendored = name => new URL(name, $('link[rel=preload][as=font]').href).href;
let codemirror = null;
const editor_kit = () => (codemirror ||= import(vendored('codemirror-6.43.15.js')));
/* The editor of each field: when the chain is drawn again, the next one takes over its undo steps. */
const editors = new Map();
const take_over = (kit, area, extensions) => {
  const earlier = editors.get(key_of(area));
  const fields = {history: kit.historyField};
  const saved = earlier?.state.doc.toString() === area.value && earlier.state.toJSON(fields);
  earlier?.destroy();
  return saved
    ? kit.EditorState.fromJSON(saved, {extensions}, fields)
    : kit.EditorState.create({doc: area.value, extensions});
};

const key_of = area => area.id || area.name; // fields of a dialog have no id
const variables_of = area => JSON.parse(area.dataset.variables);
const dialect_field = area =>
  $$('select', area.closest('.edit')).find(f => f.name === area.name.replace('template', 'dialect'));
const dialect_of = area => dialect_field(area)?.value || 'fstring';

const editor_theme = kit =>
  kit.EditorView.theme({
    '&': {fontSize: '12.5px', background: 'var(--bg)', color: 'var(--ink)'},
    '.cm-content': {fontFamily: 'var(--mono)', padding: '6px 0', caretColor: 'var(--ink)'},
    '.cm-line': {padding: '0 10px'},
    '.cm-cursor': {borderLeftColor: 'var(--ink)'},
    '&.cm-focused': {outline: 'none'},
    '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
      background: 'var(--acc-soft)',
    },
    '.cm-placeholder': {color: 'var(--ink3)'},
  });

/* {name…} of the f-string dialect: known names in the accent, unknown ones underlined. {{ and }} are braces. */
const fields_in_text = (kit, area) => {
  const known = new Set(variables_of(area).map(name => name.split('[')[0]));
  const matcher = new kit.MatchDecorator({
    regexp: /\{\{|\}\}|\{([A-Za-z_]\w*)[^{}]*\}/g,
    decoration: match =>
      !match[1]
        ? null
        : known.has(match[1])
          ? kit.Decoration.mark({class: 'tv'})
          : kit.Decoration.mark({
              class: 'tv unknown',
              attributes: {title: `There is no variable ${match[1]}`},
            }),
  });
  return kit.ViewPlugin.fromClass(
    class {
      constructor(view) {
        this.decorations = matcher.createDeco(view);
      }
      update(update) {
        this.decorations = matcher.updateDeco(update, this.decorations);
      }
    },
    {decorations: plugin => plugin.decorations},
  );
};

/* Completes a name after "{", and in the eval dialect after any letter. */
const complete_variable = area => context => {
  const word = context.matchBefore(dialect_of(area) === 'eval' ? /\w+/ : /\{\w*/);
  if (!word) return null;
  const brace = word.text.startsWith('{');
  const closes = context.state.sliceDoc(context.pos, context.pos + 1) === '}';
  return {
    from: brace ? word.from + 1 : word.from,
    options: variables_of(area).map(name => ({
      label: name,
      type: 'variable',
      apply: brace && !closes ? name + '}' : name,
    })),
    validFor: /^[\w[\]]*$/,
  };
};

const python_colours = kit =>
  kit.syntaxHighlighting(
    kit.HighlightStyle.define([
      {tag: [kit.tags.keyword, kit.tags.operatorKeyword], color: 'var(--acc)'},
      {tag: [kit.tags.string, kit.tags.number], color: 'color-mix(in srgb, var(--acc) 55%, var(--ink))'},
      {tag: kit.tags.comment, color: 'var(--ink3)'},
    ]),
  );

let full_screen = ''; // the field whose editor has the full screen, also when the chain is drawn again
const set_full_screen = (shell, name) => {
  full_screen = name;
  shell.classList.toggle('full', name !== '');
};

const mount_editor = async area => {
  if (area.dataset.editor) return;
  area.dataset.editor = 'loading';
  let kit;
  try {
    kit = await editor_kit();
  } catch {
    return; // the field itself is edited
  }
  if (!area.isConnected) return;
  const from_field = kit.Annotation.define();
  const language = new kit.Compartment();
  const language_now = () =>
    dialect_of(area) === 'eval' ? [kit.python(), python_colours(kit)] : fields_in_text(kit, area);
  const shell = document.createElement('div');
  shell.className = 'editor';
  /* A long text in the hidden field costs a layout of all its lines, so it gets there when the typing rests, or when
     the form is read. */
  let writing = 0;
  let own_input = false;
  area.write_field = () => {
    clearTimeout(writing);
    writing = 0;
    area.value = view.state.doc.toString();
  };
  const to_field = kit.EditorView.updateListener.of(update => {
    if (!update.docChanged || update.transactions.some(change => change.annotation(from_field))) return;
    clearTimeout(writing);
    writing = setTimeout(area.write_field, 200);
    own_input = true;
    area.dispatchEvent(new Event('input', {bubbles: true}));
    own_input = false;
  });
  const toggle = () => {
    set_full_screen(shell, full_screen ? '' : key_of(area));
    return true;
  };
  const leave = () => {
    if (!full_screen) return false;
    set_full_screen(shell, '');
    return true;
  };
  const extensions = [
    kit.history(),
    kit.drawSelection(),
    kit.EditorView.lineWrapping,
    kit.placeholder(area.placeholder),
    kit.EditorView.contentAttributes.of({
      'aria-label': area.closest('label').firstChild.textContent.trim(),
      spellcheck: 'false',
    }),
    kit.autocompletion({override: [complete_variable(area)], icons: false, activateOnTyping: true}),
    kit.keymap.of([
      {key: 'Ctrl-Shift-f', run: toggle},
      {key: 'Escape', run: leave},
      ...kit.completionKeymap,
      ...kit.historyKeymap,
      ...kit.defaultKeymap.filter(binding => binding.key !== 'Mod-Enter'),
    ]),
    language.of(language_now()),
    to_field,
    editor_theme(kit),
  ];
  const view = new kit.EditorView({state: take_over(kit, area, extensions), parent: shell});
  editors.set(key_of(area), view);
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'quiet grow';
  button.title = 'Full screen (Ctrl Shift F)';
  button.setAttribute('aria-label', 'Full screen');
  button.textContent = '⛶';
  button.onclick = ev => {
    ev.preventDefault();
    toggle();
    view.focus();
  };
  shell.append(button);
  area.dataset.editor = 'on';
  area.tabIndex = -1;
  area.setAttribute('aria-hidden', 'true');
  area.closest('label').after(shell); // a press inside a label would press the button
  if (full_screen === key_of(area)) set_full_screen(shell, full_screen);
  const read_field = () => {
    if (own_input) return;
    const text = view.state.doc.toString();
    if (text === area.value) return;
    view.dispatch({
      changes: {from: 0, to: text.length, insert: area.value},
      annotations: from_field.of(true),
    });
  };
  area.addEventListener('input', read_field);
  area.closest('label').addEventListener('click', ev => {
    ev.preventDefault();
    view.focus();
  });
  area.read_field = read_field;
  area.show_faults = faults => view.dispatch(kit.setDiagnostics(view.state, faults));
  area.view_length = () => view.state.doc.length;
  dialect_field(area)?.addEventListener('change', () =>
    view.dispatch({effects: language.reconfigure(language_now())}),
  );
  const lost_focus = edited === key_of(area) && document.activeElement === document.body;
  if (lost_focus || document.activeElement === area) view.focus();
};
rb.mount('textarea[data-variables]', mount_editor);

/* The place of a fault, as the program reports it below the field. */
const mark_faults = () =>
  $$('textarea[data-editor=on]').forEach(area => {
    const fault = $('[data-at]', document.getElementById(area.id.replace('template', 'state')) || area);
    if (!fault) return area.show_faults([]);
    const end = area.view_length();
    const from = Math.min(+fault.dataset.at, Math.max(0, end - 1));
    area.show_faults([
      {from, to: Math.min(end, from + 1), severity: 'error', message: fault.textContent},
    ]);
  });
document.addEventListener('rb-checked', mark_faults);

/* The field whose editor has the focus, also when the chain is drawn again. */
let edited = '';
/* The field takes the middle while it is edited; it gives it back after the press that leaves it. */
document.addEventListener('focusin', ev => {
  const editor = ev.target.closest?.('.editor');
  edited = editor ? key_of($('textarea', editor.closest('.with-editor'))) : '';
  const body = editor && ev.target.closest('.act > .body');
  if (body) body.classList.add('wide');
  else if (!ev.target.closest?.('.act > .body.wide'))
    setTimeout(() => $$('.act > .body.wide').forEach(wide => wide.classList.remove('wide')), 250);
});
