/* The parts of CodeMirror 6 that the page's prompt editor uses. `npm install && npm run build` writes the vendored file. */
export {autocompletion, completionKeymap} from '@codemirror/autocomplete';
export {defaultKeymap, history, historyField, historyKeymap} from '@codemirror/commands';
export {python} from '@codemirror/lang-python';
export {HighlightStyle, syntaxHighlighting} from '@codemirror/language';
export {setDiagnostics} from '@codemirror/lint';
export {Annotation, Compartment, EditorState} from '@codemirror/state';
export {Decoration, drawSelection, EditorView, keymap, MatchDecorator, placeholder, ViewPlugin} from '@codemirror/view';
export {tags} from '@lezer/highlight';
