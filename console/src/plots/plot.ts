// A plot in the page: SVG drawn from data, with exact values under the pointer, zoom, and a legend
// that hides series. Reports and the console show the same plots.
//
// SVG and not a canvas: print is sharp, and light and dark are colours of the style sheet, so that
// neither needs another drawing. Texts of the data become text nodes, never HTML.

import { type Axis, linearAxis, logAxis, markText, type Range, valueText } from './axis';
import type { Cell, HeatData, LinesData, PlotData } from './data';
import { extent, nearestX, paths, places, readings, topWithin } from './lines';
import { text } from './text';

/** What is shown of a plot. */
interface View {
  readonly x: Range;
  readonly y: Range;
}

interface Spot {
  readonly x: number;
  readonly y: number;
}

/** What the pointer or the keyboard points at: a line of text for each value. */
interface Found {
  readonly at: Spot;
  readonly heading: string;
  readonly values: readonly { readonly colour: number | null; readonly text: string }[];
  readonly marks: readonly Spot[];
}

export class PlotView {
  private view: View | null = null;
  private readonly hidden = new Set<string>();
  private readonly svg = element('svg', { class: 'plot-picture' });
  private readonly overlay = element('g', { class: 'plot-overlay' });
  private readonly root = document.createElement('div');
  private readonly holder = document.createElement('div');
  private readonly legend = document.createElement('div');
  private readonly reset = document.createElement('button');
  private readonly tip = document.createElement('div');
  private readonly sizes: ResizeObserver;
  private readonly clip = `plot-clip-${(clips += 1)}`;
  private x!: Axis;
  private y!: Axis;
  private width = 0;
  private drag: { start: Spot; now: Spot } | null = null;
  /** Where the pointer is, while it is over the picture. */
  private pointer: Spot | null = null;
  /** The place that the keyboard has moved to. */
  private cursor: number | null = null;

  constructor(
    parent: Element,
    private data: PlotData,
  ) {
    this.root.className = 'plot';
    this.holder.className = 'plot-holder';
    this.holder.tabIndex = 0;
    this.holder.setAttribute('role', 'group');
    this.legend.className = 'plot-legend';
    this.legend.setAttribute('role', 'group');
    this.legend.setAttribute('aria-label', text.legend);
    this.reset.type = 'button';
    this.reset.className = 'plot-reset';
    this.reset.textContent = text.showAll;
    this.reset.addEventListener('click', () => this.zoom(null));
    this.tip.className = 'plot-tip';
    this.tip.setAttribute('role', 'status');
    this.tip.hidden = true;
    this.holder.append(this.svg, this.tip);
    this.root.append(this.holder, this.legend);
    parent.append(this.root);
    this.listen();
    this.relabel();
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.holder);
    this.resize();
  }

  /** Shows other data, within what is zoomed to. */
  update(data: PlotData): void {
    const isSame = namesOf(data).join('\n') === namesOf(this.data).join('\n');
    this.data = data;
    if (!isSame) this.relabel();
    this.draw();
    // What is pointed at has other values now.
    if (this.drag) this.drawDrag();
    else if (this.cursor !== null) this.showTip(this.findAt(this.cursor, null));
    else if (this.pointer !== null) this.showTip(this.find(this.pointer));
  }

  destroy(): void {
    this.sizes.disconnect();
    this.root.remove();
  }

  private isShown = (index: number): boolean =>
    this.data.kind === 'heat' || !this.hidden.has(this.data.series[index]?.name ?? '');

  private resize(): void {
    const width = Math.round(this.holder.clientWidth);
    if (width === 0 || width === this.width) return;
    this.width = width;
    this.draw();
  }

  private zoom(view: View | null): void {
    this.view = view;
    this.cursor = null;
    this.hideTip();
    this.draw();
  }

  // The legend: a button for each series, and the one that ends the zoom.
  private relabel(): void {
    const { data } = this;
    const names = namesOf(data);
    this.holder.setAttribute('aria-label', text.described(data.title, names));
    this.legend.replaceChildren();
    if (data.kind === 'lines') {
      data.series.forEach(({ name, shape }, index) => {
        const entry = document.createElement('button');
        entry.type = 'button';
        entry.className = 'plot-entry';
        const swatch = document.createElement('span');
        swatch.className = `plot-swatch plot-${shape} ${colourOf(index)}`;
        entry.append(swatch, name);
        const show = () => entry.setAttribute('aria-pressed', String(!this.hidden.has(name)));
        entry.addEventListener('click', () => {
          if (!this.hidden.delete(name)) this.hidden.add(name);
          show();
          this.hideTip();
          this.draw();
        });
        show();
        this.legend.append(entry);
      });
    }
    const hint = document.createElement('span');
    hint.className = 'plot-hint';
    hint.textContent = text.hint;
    this.legend.append(this.reset, hint);
  }

  private draw(): void {
    const { data, width } = this;
    if (width === 0) return;
    const height = Math.max(220, Math.min(HEIGHT, width * 0.62));
    const full = data.kind === 'lines' ? extent(data, this.shown(data)) : heatExtent(data);
    const view = this.view ?? full;
    const [left, right] = [SIDE.left, width - SIDE.right];
    const [top, bottom] = [SIDE.top, height - SIDE.bottom];
    this.x = linearAxis(view.x, left, right, 80);
    this.y = (data.kind === 'lines' ? linearAxis : logAxis)(view.y, bottom, top, 36);
    this.reset.hidden = this.view === null;
    this.svg.setAttribute('viewBox', `0 0 ${width} ${height}`);

    const clip = element('clipPath', { id: this.clip });
    // Dots at the end of an axis are seen whole.
    const room = { x: left - 3, y: top - 3, width: right - left + 6, height: bottom - top + 4 };
    clip.append(element('rect', room));
    const content = element('g', { 'clip-path': `url(#${this.clip})` });
    if (data.kind === 'lines') this.drawLines(data, content);
    else this.drawHeat(data, content);
    this.overlay.replaceChildren();
    this.svg.replaceChildren(clip, ...this.frame(height), content, this.overlay);
    this.fitTitle(right);
    const isEmpty =
      data.kind === 'lines'
        ? data.series.every(({ points, shape }) => points.length === 0 || shape === 'limit')
        : data.cells.length === 0;
    if (isEmpty) {
      const middle = { x: (left + right) / 2, y: (top + bottom) / 2 };
      this.svg.append(label(text.nothing, middle.x, middle.y, 'middle', 'plot-nothing'));
    }
  }

  /** Makes a title narrower that is longer than a telephone is wide. */
  private fitTitle(right: number): void {
    const title = this.svg.querySelector<SVGTextElement>('.plot-title');
    const room = right - Number(title?.getAttribute('x'));
    if (!title || title.getComputedTextLength() <= room) return;
    title.setAttribute('textLength', String(room));
    title.setAttribute('lengthAdjust', 'spacingAndGlyphs');
  }

  /** The title, the grid, and the axes with their names. */
  private frame(height: number): SVGElement[] {
    const { data, width, x, y } = this;
    const [left, right] = [SIDE.left, width - SIDE.right];
    const bottom = height - SIDE.bottom;
    const parts: SVGElement[] = [];
    for (const mark of y.marks) {
      const at = y.place(mark);
      parts.push(element('path', { class: 'plot-grid', d: `M${left},${at}H${right}` }));
      parts.push(label(markText(mark), left - 8, at + 4, 'end', 'plot-mark'));
    }
    for (const mark of x.marks) {
      const at = x.place(mark);
      parts.push(element('path', { class: 'plot-grid', d: `M${at},${SIDE.top}V${bottom}` }));
      parts.push(label(markText(mark), at, bottom + 18, 'middle', 'plot-mark'));
    }
    parts.push(element('path', { class: 'plot-axis', d: `M${left},${SIDE.top}V${bottom}H${right}` }));
    // Above the marks of the vertical axis there is room.
    const start = width < 500 ? 4 : left;
    parts.push(label(data.title, start, 18, 'start', 'plot-title'));
    parts.push(label(data.y, start, 38, 'start', 'plot-name'));
    parts.push(label(data.x, right, height - 6, 'end', 'plot-name'));
    return parts;
  }

  private drawLines(data: LinesData, content: SVGElement): void {
    data.series.forEach((series, index) => {
      if (!this.isShown(index)) return;
      const { line, area } = paths(series, this.x, this.y);
      const colour = colourOf(index);
      if (area !== null) content.append(element('path', { class: `plot-fill ${colour}`, d: area }));
      if (line === '') return;
      content.append(element('path', { class: `plot-line plot-${series.shape} ${colour}`, d: line }));
    });
  }

  private drawHeat(data: HeatData, content: SVGElement): void {
    const most = data.cells.reduce((most, cell) => Math.max(most, cell[4]), 1);
    for (const [x0, x1, y0, y1, count] of data.cells) {
      const [left, right] = [this.x.place(x0), this.x.place(x1)];
      const [top, bottom] = [this.y.place(y1), this.y.place(Math.max(y0, this.y.range.from))];
      // Cells touch: without the overlap there are thin lines between them.
      const size = { width: right - left + 0.3, height: Math.max(0, bottom - top) + 0.3 };
      const cell = element('rect', { class: 'plot-cell', x: left, y: top, ...size });
      // On a logarithmic scale, so that one among thousands is visible.
      const share = Math.log(1 + count) / Math.log(1 + most);
      cell.style.setProperty('--share', `${Math.round(share * 1000) / 10}%`);
      content.append(cell);
    }
    if (data.limit === null) return;
    const height = this.y.place(data.limit);
    const ends = [this.x.place(this.x.range.from), this.x.place(this.x.range.to)];
    const d = `M${ends[0]},${height}H${ends[1]}`;
    content.append(element('path', { class: 'plot-line plot-limit plot-colour-1', d }));
  }

  private shown(data: LinesData) {
    const shown = data.series.filter((_, index) => this.isShown(index));
    return shown.length > 0 ? shown : data.series;
  }

  private listen(): void {
    const { holder } = this;
    holder.addEventListener('pointerdown', (event) => {
      // A finger scrolls the page; it points without a drag.
      if (event.button !== 0 || event.pointerType === 'touch') return;
      const spot = this.spotOf(event);
      if (!this.isInside(spot)) return;
      holder.setPointerCapture(event.pointerId);
      this.drag = { start: spot, now: spot };
    });
    holder.addEventListener('pointermove', (event) => {
      const spot = this.spotOf(event);
      if (this.drag) {
        this.drag.now = spot;
        this.drawDrag();
      } else if (this.isInside(spot)) {
        this.cursor = null;
        this.pointer = spot;
        this.showTip(this.find(spot));
      } else {
        this.leave();
      }
    });
    holder.addEventListener('pointerup', () => this.endDrag());
    holder.addEventListener('pointercancel', () => {
      this.drag = null;
      this.pointer = null;
      this.overlay.replaceChildren();
    });
    holder.addEventListener('pointerleave', () => this.leave());
    holder.addEventListener('dblclick', () => this.zoom(null));
    holder.addEventListener('keydown', (event) => this.key(event));
    holder.addEventListener('blur', () => {
      this.cursor = null;
      this.hideTip();
    });
  }

  private leave(): void {
    this.pointer = null;
    if (this.cursor === null) this.hideTip();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    switch (event.key) {
      case 'Escape':
        this.zoom(null);
        break;
      case 'ArrowLeft':
      case 'ArrowRight':
        this.step(event.key === 'ArrowLeft' ? -1 : 1);
        break;
      case 'Home':
      case 'End':
        this.cursor = null;
        this.step(event.key === 'Home' ? 1 : -1);
        break;
      case '+':
      case '=':
        this.zoomAround(0.5);
        break;
      case '-':
        this.zoomAround(2);
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  /** Points at the next value to the left or to the right. */
  private step(by: number): void {
    const { from, to } = this.x.range;
    const all = this.stops().filter((place) => place >= from && place <= to);
    if (all.length === 0) return;
    const here = this.cursor === null ? -1 : all.findIndex((place) => place >= this.cursor!);
    const first = by > 0 ? 0 : all.length - 1;
    const next = here < 0 ? first : Math.min(all.length - 1, Math.max(0, here + by));
    this.cursor = all[next]!;
    this.showTip(this.findAt(this.cursor, null));
  }

  private stops(): number[] {
    const { data } = this;
    if (data.kind === 'lines') return places(data.series, this.isShown);
    return [...new Set(data.cells.map((cell) => cell[0]))].sort((a, b) => a - b);
  }

  private zoomAround(factor: number): void {
    const { from, to } = this.x.range;
    const middle = this.cursor ?? (from + to) / 2;
    const full = this.data.kind === 'lines' ? extent(this.data, this.data.series) : heatExtent(this.data);
    const x = {
      from: Math.max(full.x.from, middle - (middle - from) * factor),
      to: Math.min(full.x.to, middle + (to - middle) * factor),
    };
    const isAll = x.from <= full.x.from && x.to >= full.x.to;
    const cursor = this.cursor;
    this.zoomTo(isAll ? null : x, null);
    this.cursor = cursor;
    if (cursor !== null) this.showTip(this.findAt(cursor, null));
  }

  /** Zooms to ranges. Without one of y the axis fits what is seen. */
  private zoomTo(x: Range | null, y: Range | null): void {
    const { data } = this;
    if (x === null && y === null) return this.zoom(null);
    const range = x ?? this.x.range;
    if (!(range.to - range.from > Math.abs(range.to) * 1e-9)) return;
    let upward = y;
    if (upward === null && data.kind === 'lines') {
      const top = topWithin(this.shown(data), range);
      upward = top === null ? null : { from: 0, to: top };
    }
    this.zoom({ x: range, y: upward ?? this.y.range });
  }

  private spotOf(event: PointerEvent): Spot {
    const { left, top } = this.svg.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  private isInside({ x, y }: Spot): boolean {
    const height = this.svg.clientHeight;
    return (
      x >= SIDE.left - 4 && x <= this.width - SIDE.right + 4 && y >= SIDE.top && y <= height - SIDE.bottom
    );
  }

  /** The part that a drag selects: all of an axis along which it is short. */
  private selection(): { x: [number, number] | null; y: [number, number] | null } | null {
    if (!this.drag) return null;
    const { start, now } = this.drag;
    const [left, right] = [SIDE.left, this.width - SIDE.right];
    const [top, bottom] = [SIDE.top, this.svg.clientHeight - SIDE.bottom];
    const within = (low: number, high: number, place: number) => Math.min(high, Math.max(low, place));
    const sorted = (a: number, b: number): [number, number] => (a < b ? [a, b] : [b, a]);
    const x = sorted(start.x, within(left, right, now.x));
    const y = sorted(start.y, within(top, bottom, now.y));
    const [isWide, isHigh] = [x[1] - x[0] >= LEAST_DRAG, y[1] - y[0] >= 3 * LEAST_DRAG];
    if (!isWide && !isHigh) return null;
    return { x: isWide ? x : null, y: isHigh ? y : null };
  }

  private drawDrag(): void {
    this.hideTip();
    const selected = this.selection();
    if (!selected) return;
    const [x0, x1] = selected.x ?? [SIDE.left, this.width - SIDE.right];
    const [y0, y1] = selected.y ?? [SIDE.top, this.svg.clientHeight - SIDE.bottom];
    const size = { x: x0, y: y0, width: x1 - x0, height: y1 - y0 };
    this.overlay.replaceChildren(element('rect', { class: 'plot-selection', ...size }));
  }

  private endDrag(): void {
    const selected = this.selection();
    this.drag = null;
    this.overlay.replaceChildren();
    if (!selected) return;
    const { x, y } = this;
    const across = selected.x && { from: x.value(selected.x[0]), to: x.value(selected.x[1]) };
    const upward = selected.y && { from: y.value(selected.y[1]), to: y.value(selected.y[0]) };
    this.zoomTo(across, upward);
  }

  private find(spot: Spot): Found | null {
    const { data } = this;
    if (data.kind === 'heat') return this.findAt(this.x.value(spot.x), this.y.value(spot.y));
    const x = nearestX(data.series, this.isShown, this.x, this.y, spot);
    return x === null ? null : this.findAt(x, null);
  }

  private findAt(x: number, y: number | null): Found | null {
    return this.data.kind === 'heat' ? this.heatAt(this.data, x, y) : this.linesAt(this.data, x);
  }

  private linesAt(data: LinesData, x: number): Found | null {
    const found = readings(data.series, this.isShown, x);
    const marks = found.flatMap(({ series, y }) => {
      if (data.series[series]?.shape === 'limit') return [];
      return y.map((value) => ({ x: this.x.place(x), y: this.y.place(value) }));
    });
    if (found.length === 0) return null;
    const values = found.map(({ series, y }) => ({
      colour: series,
      text: text.of(data.series[series]?.name ?? '', valuesText(y, data.series[series]?.shape)),
    }));
    const top = marks.reduce((top, mark) => Math.min(top, mark.y), Infinity);
    const at = { x: this.x.place(x), y: Number.isFinite(top) ? top : SIDE.top };
    return { at, heading: text.of(data.x, valueText(x)), values, marks };
  }

  private heatAt(data: HeatData, x: number, y: number | null): Found | null {
    const inColumn = data.cells.filter(([x0, x1]) => x >= x0 && x < x1);
    // The keyboard has no height: it points at the longest of a column.
    const highest = inColumn.reduce<Cell | null>(
      (best, cell) => (best && best[3] >= cell[3] ? best : cell),
      null,
    );
    const cell = y === null ? highest : inColumn.find(([, , y0, y1]) => y >= y0 && y < y1);
    if (!cell) return null;
    const [x0, x1, y0, y1, count] = cell;
    const range = (from: number, to: number) => text.range(valueText(from), valueText(to));
    const at = { x: this.x.place((x0 + x1) / 2), y: this.y.place(y1) };
    const values = [
      { colour: null, text: text.of(data.y, range(y0, y1)) },
      { colour: null, text: text.of(text.times, valueText(count)) },
    ];
    return { at, heading: text.of(data.x, range(x0, x1)), values, marks: [] };
  }

  private showTip(found: Found | null): void {
    if (!found) return this.hideTip();
    const { tip, overlay } = this;
    const heading = document.createElement('p');
    heading.className = 'plot-tip-heading';
    heading.textContent = found.heading;
    const lines = found.values.map(({ colour, text: line }) => {
      const row = document.createElement('p');
      if (colour !== null) {
        const swatch = document.createElement('span');
        swatch.className = `plot-swatch ${colourOf(colour)}`;
        row.append(swatch);
      }
      row.append(line);
      return row;
    });
    tip.replaceChildren(heading, ...lines);
    tip.hidden = false;
    const height = this.svg.clientHeight;
    const rule = { class: 'plot-rule', d: `M${found.at.x},${SIDE.top}V${height - SIDE.bottom}` };
    const dots = found.marks.map(({ x, y }) => element('circle', { class: 'plot-dot', cx: x, cy: y, r: 4 }));
    overlay.replaceChildren(element('path', rule), ...dots);
    // Beside the place, on the side with more room, so that it is not covered.
    const room = this.width - tip.offsetWidth;
    const beside = found.at.x < this.width / 2 ? found.at.x + 14 : found.at.x - tip.offsetWidth - 14;
    tip.style.left = `${Math.max(0, Math.min(room, beside))}px`;
    tip.style.top = `${Math.max(0, Math.min(height - tip.offsetHeight, found.at.y - 12))}px`;
  }

  private hideTip(): void {
    this.tip.hidden = true;
    this.overlay.replaceChildren();
  }
}

function valuesText(values: readonly number[], shape: string | undefined): string {
  const texts = values.map(valueText);
  const [first = '', second] = texts;
  if (shape === 'spans' && second !== undefined) return text.range(first, second);
  return texts.join(', ');
}

/** The ranges that show all cells. Zero has no place on a logarithmic axis. */
function heatExtent(data: HeatData): View {
  const ends = data.cells.flatMap((cell) => [cell[2], cell[3]]);
  if (data.limit !== null) ends.push(data.limit);
  const low = ends.filter((end) => end > 0).reduce((low, end) => Math.min(low, end), Infinity);
  const high = ends.reduce((high, end) => Math.max(high, end), 0);
  const isKnown = Number.isFinite(low) && high > low;
  return {
    x: { from: 0, to: data.cells.reduce((most, cell) => Math.max(most, cell[1]), Math.max(1, data.end)) },
    y: isKnown ? { from: low / 1.5, to: high * 1.2 } : { from: 1, to: 10 },
  };
}

const namesOf = (data: PlotData): string[] =>
  data.kind === 'lines' ? data.series.map(({ name }) => name) : [];

const colourOf = (index: number) => `plot-colour-${index % COLOURS}`;

function label(content: string, x: number, y: number, anchor: string, kind: string): SVGElement {
  const label = element('text', { x, y, 'text-anchor': anchor, class: kind });
  label.textContent = content;
  return label;
}

function element<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Record<string, string | number>,
): SVGElementTagNameMap[Name] {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

/** Numbers the clip paths of a page, whose names are those of the whole page. */
let clips = 0;

/** The height of a plot in a wide page, in pixels. */
const HEIGHT = 380;
/** Room around the picture for the title, the marks and the names of the axes. */
const SIDE = { left: 60, right: 16, top: 50, bottom: 44 };
/** A shorter movement of the pointer, in pixels, is a click. */
const LEAST_DRAG = 8;
/** The number of colours in the style sheet. */
const COLOURS = 7;
