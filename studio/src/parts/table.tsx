// A table of any length: only the rows that can be seen are in the page. Sorted by a click on a column.
import {
  Virtualizer,
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type VirtualizerOptions,
} from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { short } from "../format";

export interface Column<Row> {
  name: string;
  title?: string;
  value: (row: Row) => unknown;
  show?: (row: Row) => ComponentChildren;
  width?: number;
  align?: "right";
}

const ROW = 30;
/** Pixels that a wide column keeps when there is little room. */
const NARROW = 130;

function compare(one: unknown, other: unknown): number {
  if (one === other) return 0;
  if (one === null || one === undefined) return 1;
  if (other === null || other === undefined) return -1;
  if (isNumber(one) && isNumber(other)) return one < other ? -1 : one > other ? 1 : 0;
  return String(one).localeCompare(String(other), undefined, { numeric: true });
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

/** The width of a column in letters: as wide as what stands in its first rows, within bounds. */
function letters<Row>(column: Column<Row>, rows: Row[]): number {
  let most = (column.title ?? column.name).length + 2;
  for (const row of rows.slice(0, 60)) most = Math.max(most, short(column.value(row), 60).length);
  return Math.min(Math.max(most, 5), 48);
}

export function DataTable<Row>({
  rows,
  columns,
  label,
  pick,
  height = 460,
}: {
  rows: Row[];
  columns: Column<Row>[];
  label: string;
  pick?: (row: Row) => void;
  height?: number;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [, redraw] = useReducer((turn: number) => turn + 1, 0);
  const [sort, setSort] = useState<{ name: string; down: boolean } | null>(null);
  const sorted = useMemo(() => {
    const column = sort && columns.find((known) => known.name === sort.name);
    if (!sort || !column) return rows;
    const keyed = rows.map((row) => [column.value(row), row] as const);
    keyed.sort((one, other) => compare(one[0], other[0]) * (sort.down ? -1 : 1));
    return keyed.map(([, row]) => row);
  }, [rows, sort, columns]);

  const options = (): VirtualizerOptions<HTMLDivElement, HTMLElement> => ({
    count: sorted.length,
    getScrollElement: () => place.current,
    estimateSize: () => ROW,
    overscan: 12,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => redraw(null as never),
  });
  const virtual = useRef<Virtualizer<HTMLDivElement, HTMLElement> | null>(null);
  virtual.current ??= new Virtualizer(options());
  virtual.current.setOptions(options());
  useEffect(() => virtual.current!._didMount(), []);
  useEffect(() => {
    virtual.current!._willUpdate();
  });

  const widths = useMemo(() => columns.map((column) => column.width ?? Math.round(letters(column, rows) * (column.align === "right" ? 9.2 : 8.2) + 24)), [rows, columns.map((column) => column.name).join("\n")]);
  // Half a text is still of use, half a number is not.
  const least = (at: number) => (columns[at].align === "right" ? widths[at] : Math.min(widths[at], NARROW));
  const template = widths.map((width, at) => (columns[at].width ? `${width}px` : `minmax(${least(at)}px, ${width}fr)`)).join(" ");
  const leastWidth = widths.reduce((sum, width, at) => sum + (columns[at].width ? width : least(at)), 0);
  const items = virtual.current.getVirtualItems();
  const tall = Math.min(height, (sorted.length + 1) * ROW + 8);
  return (
    <div class="grid" ref={place} style={{ height: `${tall}px` }} role="table" aria-label={label} aria-rowcount={sorted.length + 1} tabIndex={0}>
      <div class="grid-wide" role="presentation" style={{ minWidth: `${leastWidth}px` }}>
        <div class="grid-head" role="rowgroup">
          <div class="grid-row" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
            {columns.map((column) => {
              const how = sort?.name === column.name ? (sort.down ? "descending" : "ascending") : "none";
              return (
                <div role="columnheader" aria-sort={how} class={column.align ?? ""}>
                  <button
                    type="button"
                    onClick={() =>
                      setSort(how === "none" ? { name: column.name, down: false } : how === "ascending" ? { name: column.name, down: true } : null)
                    }
                  >
                    {column.title ?? column.name}
                    <span aria-hidden="true">{how === "ascending" ? " ▲" : how === "descending" ? " ▼" : ""}</span>
                  </button>
                </div>
              );
            })}
          </div>
        </div>
        <div class="grid-body" role="rowgroup" style={{ height: `${virtual.current.getTotalSize()}px` }}>
          {items.map((item) => {
            const row = sorted[item.index];
            if (row === undefined) return null;
            return (
              <div
                key={item.key}
                class={`grid-row ${pick ? "can-pick" : ""}`}
                role="row"
                aria-rowindex={item.index + 2}
                tabIndex={pick ? 0 : undefined}
                style={{ gridTemplateColumns: template, transform: `translateY(${item.start}px)` }}
                onClick={pick && (() => pick(row))}
                onKeyDown={pick && ((event) => {
                  const beside = event.key === "ArrowDown" ? event.currentTarget.nextElementSibling : event.key === "ArrowUp" ? event.currentTarget.previousElementSibling : null;
                  if (beside) {
                    event.preventDefault();
                    (beside as HTMLElement).focus();
                  } else if (event.key === "Enter") pick(row);
                })}
              >
                {columns.map((column) => {
                  const value = column.value(row);
                  return (
                    <div role="cell" class={column.align ?? ""} dir="auto" title={short(value, 400)}>
                      {column.show ? column.show(row) : value === null || value === undefined ? <span class="null">null</span> : short(value, 200)}
                    </div>
                  );
                })}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
