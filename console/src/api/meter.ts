// What the meter's own console has: the measurement that runs, what can be measured, and reports.

import { withToken } from './address';
import { Failure } from './failure';
import { Fields } from './fields';
import { request, send } from './request';

/** The console answers from memory. */
const TIMEOUT_MS = 6_000;
/** A comparison draws thousands of samples. */
const COMPARE_TIMEOUT_MS = 60_000;
const API = '/api/v1/meter';

export type Kind = 'run' | 'capacity';

/** How a measurement has ended. */
export type Result = 'held' | 'not-held' | 'invalid' | 'failed';

/** Figures at a time of a measurement; times in seconds. */
export interface Sample {
  /** Since the measurement began. */
  readonly at: number;
  readonly streams: number;
  readonly bitsPerS: number;
  readonly askedBitsPerS: number;
  readonly p99: number;
}

/** The latest figures of a run of streams; times in seconds. */
export interface Figures {
  readonly streams: number;
  readonly bitsPerS: number;
  readonly askedBitsPerS: number;
  /** Of this run, and how long it is to take. */
  readonly elapsed: number;
  readonly duration: number;
  /** A frame that comes later is late. */
  readonly allowed: number;
  readonly frames: number;
  readonly late: number;
  readonly lateByMeter: number;
  readonly p50: number;
  readonly p99: number;
  readonly longest: number;
}

export interface Measurement {
  /** Counts the measurements of the console. */
  readonly number: number;
  readonly name: string;
  readonly kind: Kind;
  readonly target: string;
  readonly profile: string;
  readonly elapsed: number;
  readonly isRunning: boolean;
  readonly isStopping: boolean;
  readonly result: Result | null;
  /** What it does now, in words. */
  readonly state: string;
  /** Bytes that were filled, and all. */
  readonly fill: { readonly done: number; readonly total: number } | null;
  /** Runs of a search, notes, errors and hints, in order. */
  readonly lines: readonly { readonly kind: string; readonly text: string }[];
  readonly figures: Figures | null;
  /** The index of the first sample that is sent, and the samples from there on. */
  readonly from: number;
  readonly samples: readonly Sample[];
}

export interface MeterStatus {
  readonly version: string;
  readonly directory: string;
  /** Directories in which may be measured. */
  readonly allowed: readonly string[];
  readonly measurement: Measurement | null;
}

export interface Choices {
  readonly profiles: readonly { readonly name: string; readonly title: string; readonly rate: number }[];
  readonly models: readonly { readonly name: string; readonly bytes: number }[];
}

/** A measurement that is ordered; what is missing is as on the command line. */
export interface Order {
  kind: Kind;
  target: string;
  profile: string;
  name?: string;
  streams?: number;
  duration?: number;
  max_streams?: number;
  /** Seconds. */
  confirm?: number;
  size?: number;
}

export interface Report {
  readonly name: string;
  readonly kind: Kind | 'other';
  readonly target: string;
  readonly profile: string;
  readonly streams: number | null;
  readonly frames: number | null;
  readonly late: number | null;
  readonly held: boolean | null;
  readonly isValid: boolean;
  readonly isComplete: boolean;
  /** Unix time in seconds. */
  readonly modified: number;
  readonly hasPage: boolean;
}

/** A figure of two runs, and the difference with its range. */
export interface ComparedFigure {
  readonly name: string;
  readonly a: number;
  readonly b: number;
  readonly low: number;
  readonly high: number;
  /** Whether the difference is not a part of A's. */
  readonly isAbsolute: boolean;
  readonly verdict: string;
}

export interface Comparison {
  /** Empty of searches, of which the numbers of streams are compared. */
  readonly figures: readonly ComparedFigure[];
  readonly streams: readonly number[];
  /** What was not asked alike. */
  readonly differences: readonly string[];
}

/** Whether a response to `/status` is the meter's console's. */
export function isMeterStatus(value: unknown): boolean {
  return Fields.of(value).objectOrNull('meter') !== null;
}

/** The status, with the samples of a measurement from an index on. */
export async function loadMeterStatus(
  number: number,
  after: number,
  signal: AbortSignal,
): Promise<MeterStatus> {
  const address = `/status?run=${number}&after=${after}`;
  const status = Fields.of(await request(address, { signal, timeoutMs: TIMEOUT_MS }));
  const meter = status.objectOrNull('meter');
  if (!meter) throw new Failure('unreadable', 'the response is not of the meter');
  return {
    version: meter.text('version'),
    directory: meter.text('directory'),
    allowed: meter.texts('allowed'),
    measurement: decodeMeasurement(status.objectOrNull('run')),
  };
}

function decodeMeasurement(run: Fields | null): Measurement | null {
  if (!run) return null;
  const samples = run.object('samples');
  const state = run.object('state');
  const total = state.numberOrNull('total');
  const figures = run.objectOrNull('figures');
  return {
    number: run.number('number'),
    name: run.text('name'),
    kind: run.text('kind') === 'capacity' ? 'capacity' : 'run',
    target: run.text('target'),
    profile: run.text('profile'),
    elapsed: run.number('elapsed'),
    isRunning: run.flag('running'),
    isStopping: run.flag('stopping'),
    result: resultOf(run.textOrNull('result')),
    state: state.text('text'),
    fill: total === null ? null : { done: state.number('done'), total },
    lines: run.list('lines', (line) => ({ kind: line.text('kind'), text: line.text('text') })),
    figures: figures && decodeFigures(figures),
    from: samples.number('from'),
    samples: samples.list('items', (sample) => ({
      at: sample.number('at'),
      streams: sample.number('streams'),
      bitsPerS: sample.number('bits_per_s'),
      askedBitsPerS: sample.number('asked_bits_per_s'),
      p99: sample.number('p99'),
    })),
  };
}

function resultOf(word: string | null): Result | null {
  if (word === 'held' || word === 'not-held' || word === 'invalid') return word;
  return word === null ? null : 'failed';
}

function decodeFigures(figures: Fields): Figures {
  const response = figures.object('response');
  return {
    streams: figures.number('streams'),
    bitsPerS: figures.number('bits_per_s'),
    askedBitsPerS: figures.number('asked_bits_per_s'),
    elapsed: figures.number('elapsed'),
    duration: figures.number('duration'),
    allowed: figures.number('allowed'),
    frames: figures.number('frames'),
    late: figures.number('late'),
    lateByMeter: figures.number('late_by_meter'),
    p50: response.number('p50'),
    p99: response.number('p99'),
    longest: response.number('max'),
  };
}

export async function loadChoices(signal: AbortSignal): Promise<Choices> {
  const choices = Fields.of(await request(`${API}/choices`, { signal }));
  return {
    profiles: choices.neededList('profiles', (profile) => ({
      name: profile.text('name'),
      title: profile.text('title'),
      rate: profile.number('bits_per_s'),
    })),
    models: choices.neededList('models', (model) => ({
      name: model.text('name'),
      bytes: model.number('bytes'),
    })),
  };
}

/** Starts a measurement. The result is the name of its report. */
export async function startMeasurement(order: Order): Promise<string> {
  const started = await request(`${API}/runs`, { method: 'POST', json: order });
  return Fields.of(started).text('name');
}

export async function stopMeasurement(): Promise<void> {
  await request(`${API}/stop`, { method: 'POST' });
}

export async function loadReports(signal: AbortSignal): Promise<Report[]> {
  const list = Fields.of(await request(`${API}/reports`, { signal }));
  return list.neededList('reports', (report): Report => {
    const kind = report.text('kind');
    const flagOr = (name: string) => !report.hasValue(name) || report.flag(name);
    return {
      name: report.text('name'),
      kind: kind === 'run' || kind === 'capacity' ? kind : 'other',
      target: report.text('target'),
      profile: report.text('profile'),
      streams: report.numberOrNull('streams'),
      frames: report.numberOrNull('frames'),
      late: report.numberOrNull('late'),
      held: report.hasValue('held') ? report.flag('held') : null,
      isValid: flagOr('valid'),
      isComplete: flagOr('complete'),
      modified: report.number('modified'),
      hasPage: report.flag('has_page'),
    };
  });
}

export async function removeReport(name: string): Promise<void> {
  await request(`${API}/reports?name=${encodeURIComponent(name)}`, { method: 'DELETE' });
}

/** The address of a report's page, for links. */
export function reportAddress(name: string): string {
  return withToken(`${API}/reports/page?name=${encodeURIComponent(name)}`);
}

export async function loadComparison(a: string, b: string, signal: AbortSignal): Promise<Comparison> {
  const address = `${API}/comparison?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`;
  const compared = Fields.of(await request(address, { signal, timeoutMs: COMPARE_TIMEOUT_MS }));
  return {
    figures: compared.object('comparison').list('figures', (figure) => ({
      name: figure.text('name'),
      a: figure.number('a'),
      b: figure.number('b'),
      low: figure.object('difference').number('low'),
      high: figure.object('difference').number('high'),
      isAbsolute: figure.flag('absolute'),
      verdict: figure.text('verdict'),
    })),
    streams: compared.numbers('streams'),
    differences: compared.texts('scenarios_differ_in'),
  };
}

/** The longest response of each second of a run, in seconds. */
export async function loadSeconds(name: string, signal: AbortSignal): Promise<number[]> {
  const address = `${API}/reports/seconds?name=${encodeURIComponent(name)}`;
  const table = await (await send(address, { signal })).text();
  const [head = '', ...rows] = table.trim().split('\n');
  const column = head.split(',').indexOf('longest_response_ns');
  return rows.map((row) => Number(row.split(',')[column] ?? Number.NaN) / 1e9);
}

/** A run of a search. */
export interface SearchRun {
  readonly streams: number;
  readonly bitsPerS: number;
  readonly isHeld: boolean;
}

export async function loadSearch(name: string, signal: AbortSignal): Promise<SearchRun[]> {
  const address = `${API}/reports/summary?name=${encodeURIComponent(name)}`;
  return Fields.of(await request(address, { signal })).list('runs', (run) => ({
    streams: run.number('streams'),
    bitsPerS: run.number('bits_per_s'),
    isHeld: run.flag('held'),
  }));
}
