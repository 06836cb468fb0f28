// Small parts that every view is made of.
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { colourOf, isNode } from "../colours";
import type { Data } from "../data";
import { short, text } from "../format";
import { open } from "../route";

type Children = { children?: ComponentChildren };

export function Link({ to, children, ...more }: { to: string } & Children & Omit<JSX.HTMLAttributes<HTMLAnchorElement>, "href">) {
  return (
    <a
      {...more}
      href={to}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        open(to);
      }}
    >
      {children}
    </a>
  );
}

export function Button({
  children,
  kind = "plain",
  busy = false,
  ...more
}: { kind?: "plain" | "main" | "danger" | "quiet"; busy?: boolean } & Children & JSX.ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <button type="button" {...more} class={`button ${kind} ${more.class ?? ""}`} aria-busy={busy} disabled={busy || (more.disabled as boolean)}>
      {busy && <span class="spinner" aria-hidden="true" />}
      {children}
    </button>
  );
}

/** Saves what is shown as a file of some kind. */
export function SaveButton({ kind, save, disabled = false }: { kind: string; save: () => unknown; disabled?: boolean }) {
  return <Button kind="quiet" title={`Save as a file: ${kind}`} disabled={disabled} onClick={() => void save()}><span class="down" aria-hidden="true">↓</span>{kind}</Button>;
}

export function Problem({ error, again }: { error: Error | string; again?: () => void }) {
  return (
    <div class="problem" role="alert">
      <span>{typeof error === "string" ? error : error.message}</span>
      {again && (
        <Button kind="quiet" onClick={again}>
          Try again
        </Button>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string } & Children) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      <div>{children}</div>
    </div>
  );
}

export function Loading({ what = "Loading" }: { what?: string }) {
  return (
    <div class="loading" role="status">
      <span class="spinner" aria-hidden="true" /> {what}…
    </div>
  );
}

/** What a view shows of its data: progress, the error's one line, or the data. */
export function Shown<T>({ of, children }: { of: Data<T>; children: (data: T) => ComponentChildren }) {
  if (of.error && of.data === null) return <Problem error={of.error} again={of.reload} />;
  if (of.data === null) return <Loading />;
  return <>{children(of.data)}</>;
}

export function Card({ title, actions, children, class: kind = "" }: { title?: ComponentChildren; actions?: ComponentChildren; class?: string } & Children) {
  return (
    <section class={`card ${kind}`}>
      {(title || actions) && (
        <header class="card-head">
          {title && <h2>{title}</h2>}
          {actions && <div class="actions">{actions}</div>}
        </header>
      )}
      <div class="card-body">{children}</div>
    </section>
  );
}

export function TypeName({ name }: { name: string }) {
  return (
    <span class="type">
      {isNode(name) && <i class="dot" style={{ background: colourOf(name) }} aria-hidden="true" />}
      {name}
    </span>
  );
}

export function Badge({ children, kind = "" }: { kind?: string } & Children) {
  return <span class={`badge ${kind}`}>{children}</span>;
}

/** A value as text: null is marked, a long text is cut until somebody wants all of it. */
export function Value({ value, most = 300 }: { value: unknown; most?: number }) {
  const [isOpen, setOpen] = useState(false);
  if (value === null || value === undefined) return <span class="null">null</span>;
  if (isVector(value) && !isOpen)
    return (
      <span class="value">
        [{value.slice(0, 3).map((each) => text(each)).join(", ")}, …]{" "}
        <button type="button" class="inline-button" onClick={() => setOpen(true)}>all {value.length.toLocaleString("en")} numbers</button>
      </span>
    );
  const whole = text(value);
  if (whole.length <= most && !isOpen) return <span class="value" dir="auto">{whole}</span>;
  return (
    <span class="value" dir="auto">
      {isOpen ? whole.slice(0, 100_000) : short(value, most)}{" "}
      <button type="button" class="inline-button" onClick={() => setOpen(!isOpen)}>
        {isOpen ? "less" : `all ${whole.length.toLocaleString("en")} characters`}
      </button>
    </span>
  );
}

function isVector(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 5 && value.every((each) => typeof each === "number");
}

export function Tabs<T extends string>({ of, now, pick, label }: { of: [T, string][]; now: T; pick: (name: T) => void; label: string }) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const place = of.findIndex(([name]) => name === now);
    const next = of[(place + step + of.length) % of.length][0];
    pick(next);
    (event.currentTarget as HTMLElement).querySelector<HTMLElement>(`[data-tab="${next}"]`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {of.map(([name, title]) => (
        <button
          type="button"
          role="tab"
          data-tab={name}
          aria-selected={name === now}
          tabIndex={name === now ? 0 : -1}
          onClick={() => pick(name)}
        >
          {title}
        </button>
      ))}
    </div>
  );
}

export function Field({ label, hint, children, class: kind = "" }: { label: string; hint?: ComponentChildren; class?: string } & Children) {
  return (
    <label class={`field ${kind}`}>
      <span class="field-label">{label}</span>
      {children}
      {hint && <span class="hint">{hint}</span>}
    </label>
  );
}

export function Dialog({ title, close, children }: { title: string; close: () => void } & Children) {
  const place = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = place.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={place} aria-labelledby="dialog-title" onCancel={(event) => { event.preventDefault(); close(); }}>
      <header class="dialog-head">
        <h2 id="dialog-title">{title}</h2>
        <button type="button" class="icon" aria-label="Close" onClick={close}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}

interface Note {
  id: number;
  text: string;
  kind: "good" | "bad";
}
export const notes = signal<Note[]>([]);

export function say(message: string, kind: "good" | "bad" = "good"): void {
  const note = { id: Date.now() + Math.random(), text: message, kind };
  notes.value = [...notes.value, note];
  setTimeout(() => (notes.value = notes.value.filter((other) => other.id !== note.id)), kind === "bad" ? 12_000 : 5_000);
}

export function Notes() {
  return (
    <div class="notes" role="status" aria-live="polite">
      {notes.value.map((note) => (
        <div key={note.id} class={`note ${note.kind}`}>
          {note.text}
        </div>
      ))}
    </div>
  );
}

/** An action that a button starts: whether it runs, and what went wrong. */
export function useAction<A extends any[]>(work: (...given: A) => Promise<unknown>): [(...given: A) => Promise<void>, boolean, Error | null] {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const run = async (...given: A) => {
    setBusy(true);
    setError(null);
    try {
      await work(...given);
    } catch (problem) {
      if ((problem as Error).name !== "AbortError") setError(problem as Error);
    } finally {
      setBusy(false);
    }
  };
  return [run, busy, error];
}
