// The editor for .gq and .pg texts: CodeMirror with highlighting, completion from the schema, and problems under the text.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type Completion, type CompletionContext } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, indentOnInput, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { forceLinting, linter, lintGutter, lintKeymap, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import { catalog } from "../data";
import { small, variableTypes } from "../gq";

const GQ = /^(?:query|match|return|distinct|having|order|limit|offset|asc|desc|nulls|first|last|as|and|or|not|in|is|null|true|false|contains|starts_with|ends_with|optional|exists|with|union|all|shortest|all_shortest|case|when|then|else|end|insert|upsert|update|delete|set|where)\b/;
const PG = /^(?:node|edge|interface|implements|enum|String|Bool|I32|I64|U32|U64|F32|F64|Date|DateTime|Vector|Blob)\b/;

function language(kind: "gq" | "pg") {
  const words = kind === "gq" ? GQ : PG;
  return StreamLanguage.define({
    token(stream) {
      if (stream.eatSpace()) return null;
      if (stream.match("//") || stream.match("#")) {
        stream.skipToEnd();
        return "comment";
      }
      if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
      if (stream.match(/^\$\w+/)) return "variableName";
      if (stream.match(/^@\w+/)) return "meta";
      if (stream.match(/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/)) return "number";
      if (stream.match(words)) return "keyword";
      if (stream.match(/^[A-Z]\w*/)) return "typeName";
      if (stream.match(/^[a-z_]\w*(?=\()/)) return "function";
      if (stream.match(/^[a-z_]\w*/)) return "propertyName";
      stream.next();
      return "punctuation";
    },
    tokenTable: { function: tags.function(tags.variableName) },
    languageData: { commentTokens: { line: "//" } },
  });
}

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--dim)", fontStyle: "italic" },
  { tag: tags.variableName, color: "var(--code-variable)" },
  { tag: tags.function(tags.variableName), color: "var(--code-function)" },
  { tag: tags.typeName, color: "var(--code-type)" },
  { tag: tags.meta, color: "var(--code-function)" },
]);

const looks = EditorView.theme({
  "&": { backgroundColor: "var(--field)", color: "var(--ink)", fontSize: "13px" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--dim)", border: "none" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-1px" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-activeLine": { backgroundColor: "var(--active-line)" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { backgroundColor: "var(--selection) !important" },
  ".cm-tooltip": { backgroundColor: "var(--card)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "inherit", opacity: "0.8", fontStyle: "normal" },
  ".cm-diagnostic": { padding: "4px 8px" },
  ".cm-scroller": { overflow: "auto", maxHeight: "46vh", minHeight: "140px" },
});

function complete(context: CompletionContext) {
  const known = catalog.value;
  if (!known) return null;
  const before = context.state.sliceDoc(0, context.pos);
  const all = context.state.doc.toString();
  const properties = (name: string | undefined): Completion[] => [
    ...(known.types.find((type) => type.name === name)?.properties ?? []).map((each) => ({ label: each.name, type: "property", detail: each.type, info: each.description ?? undefined })),
    { label: "@id", type: "property", detail: "String" },
  ];
  const member = /\$([a-z_]\w*)\.(@?\w*)$/.exec(before);
  if (member) return { from: context.pos - member[2].length, options: properties(variableTypes(all).get(member[1])) };
  const variable = /\$(\w*)$/.exec(before);
  if (variable) {
    const declared = [...all.matchAll(/\$([a-z_]\w*)\s*:\s*\[?(?:String|Bool|I32|I64|U32|U64|F32|F64|Date|DateTime|Vector)/g)].map((each) => each[1]);
    const names = new Set([...variableTypes(all).keys(), ...declared]);
    return { from: context.pos - variable[0].length, options: [...names].map((name) => ({ label: `$${name}`, type: "variable", detail: variableTypes(all).get(name) })) };
  }
  const typed = /:\s*([A-Z]?\w*)$/.exec(before);
  const word = context.matchBefore(/\w+/);
  const inside = /(?:\b(?:insert|upsert|update)\s+|:\s*)([A-Z]\w*)\s*(?:set\s*)?\{[^{}]*$/.exec(before);
  if (inside && (word || context.explicit)) {
    const edge = known.types.find((type) => type.name === inside[1] && type.kind === "edge");
    const ends: Completion[] = edge ? [{ label: "from", type: "property" }, { label: "to", type: "property" }] : [];
    return { from: word?.from ?? context.pos, options: [...properties(inside[1]), ...ends] };
  }
  if (!word && !typed && !context.explicit) return null;
  return {
    from: word?.from ?? context.pos,
    options: [
      ...known.types.map((type) => ({ label: type.name, type: "class", detail: type.kind === "edge" ? `${type.from} → ${type.to}` : "node", boost: typed ? 2 : 0 })),
      ...known.types.filter((type) => type.kind === "edge").map((type) => ({ label: small(type.name), type: "method", detail: `${type.from} → ${type.to}` })),
      ...known.functions.map((each) => ({ label: each.name, type: "function", detail: each.usage, info: each.help, apply: `${each.name}(` })),
      ...known.words.filter((each) => !each.endsWith("(")).map((label) => ({ label, type: "keyword" })),
    ],
  };
}

interface Given {
  text: string;
  /** Counts how often `text` was set from outside; only then it replaces what stands in the editor. */
  turn?: number;
  kind: "gq" | "pg";
  label: string;
  change: (text: string) => void;
  run?: () => void;
  check?: (text: string) => Promise<Diagnostic[]>;
  readOnly?: boolean;
}

export default function Editor({ text, turn = 0, kind, label, change, run, check, readOnly = false }: Given) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const now = useRef({ change, run, check });
  now.current = { change, run, check };
  useEffect(() => {
    const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
    const editor = new EditorView({
      parent: place.current!,
      state: EditorState.create({
        doc: text,
        extensions: [
          EditorView.cspNonce.of(nonce),
          EditorState.readOnly.of(readOnly),
          EditorView.contentAttributes.of({ "aria-label": label }),
          lineNumbers(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          closeBrackets(),
          highlightActiveLine(),
          highlightSelectionMatches(),
          language(kind),
          syntaxHighlighting(colours),
          looks,
          EditorView.lineWrapping,
          ...(kind === "gq" ? [autocompletion({ override: [complete] })] : []),
          ...(check ? [lintGutter(), linter((editing) => now.current.check!(editing.state.doc.toString()), { delay: 350 })] : []),
          keymap.of([
            { key: "Mod-Enter", run: () => { now.current.run?.(); return !!now.current.run; } },
            // Tab leaves the editor after Escape, so that nobody is caught in it.
            ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap, indentWithTab,
          ]),
          EditorView.updateListener.of((update) => update.docChanged && now.current.change(update.state.doc.toString())),
        ],
      }),
    });
    view.current = editor;
    if (check) forceLinting(editor);
    return () => editor.destroy();
  }, []);
  useEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== text)
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
  }, [turn]);
  return <div class="editor" ref={place} />;
}
