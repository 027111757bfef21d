// Plans: what disks would hold, computed by the server as `tenuto plan` does.

import { Fields } from './fields';
import { request } from './request';

export interface PlannedModel {
  readonly name: string;
  /** The disk in words. */
  readonly title: string;
  readonly kind: string;
}

export interface PlannedPolicy {
  readonly name: string;
  readonly guaranteed: boolean;
}

/** What a plan can be made for. */
export interface Planning {
  readonly models: readonly PlannedModel[];
  readonly policies: readonly PlannedPolicy[];
  readonly readSizes: readonly number[];
}

/** What one plan is made for. `null` leaves a choice to the server. */
export interface Question {
  readonly disk: { readonly model: string } | { readonly uuid: string };
  readonly demand: { readonly rate: number } | { readonly title: string };
  readonly disks: number;
  /** Bytes, of all disks together; `null`: without limit. */
  readonly memory: number | null;
  /** `null`: the best of all sizes. */
  readonly readSize: number | null;
  readonly policy: string | null;
  /** How viewers choose among titles; `null`: each watches a title of its own. */
  readonly popularity: Popularity | null;
}

export interface Popularity {
  readonly titles: number;
  /** Exponent of Zipf's law. */
  readonly zipf: number;
}

/** An estimate of the viewers who share reads. */
export interface SharedPlan {
  readonly titles: number;
  readonly readSize: number;
  readonly viewers: number;
  /** Streams that the disks read; the other viewers follow one of these. */
  readonly streams: number;
  readonly shortOf: string | null;
}

export interface Admitted {
  readonly streams: number;
  readonly shortOf: string | null;
  readonly memoryBooked: number;
  readonly lateReads: number;
}

/** Streams of one disk with reads of one size; `null` where a bound is not known. */
export interface PlanRow {
  readonly readSize: number;
  /** Seconds of a stream that a read holds. */
  readonly lasts: number;
  readonly ozden: number | null;
  readonly anyPlace: number | null;
  readonly zoneExact: number | null;
  readonly usual: number | null;
  readonly inMemory: number | null;
  readonly admitted: Admitted | null;
}

export interface BestPlan {
  readonly readSize: number;
  readonly streams: number;
  readonly streamsInAll: number;
  readonly shortOf: string | null;
  readonly cycle: number | null;
  readonly buffer: number | null;
  readonly memoryNeeded: number | null;
  readonly memoryBooked: number | null;
  readonly startup: number | null;
  readonly startupInRounds: number | null;
}

export interface Plan {
  /** The disk in words. */
  readonly disk: string;
  readonly bitRate: number;
  readonly memory: number | null;
  readonly disks: number;
  readonly policy: string;
  readonly guaranteed: boolean;
  /** Streams of one disk by its transfer rate alone. */
  readonly ratio: number | null;
  readonly rows: readonly PlanRow[];
  /** `null`: no stream is admitted. */
  readonly best: BestPlan | null;
  readonly shared: SharedPlan | null;
}

/** A plan of a solid-state disk takes the server some seconds. */
const PLAN_TIMEOUT_MS = 60_000;

export async function loadPlanning(signal: AbortSignal): Promise<Planning> {
  const planning = Fields.of(await request('/api/v1/planning', { signal }));
  return {
    models: planning.neededList('models', (model) => ({
      name: model.text('name'),
      title: model.text('title', model.text('name')),
      kind: model.text('kind'),
    })),
    policies: planning.list('policies', (policy) => ({
      name: policy.text('name'),
      guaranteed: policy.flag('guaranteed'),
    })),
    readSizes: planning.numbers('read_sizes'),
  };
}

/** The address of a plan. Equal questions have equal addresses. */
export function planAddress(question: Question): string {
  const { disk, demand, disks, memory, readSize, policy, popularity } = question;
  const query = new URLSearchParams();
  if ('model' in disk) query.set('model', disk.model);
  else query.set('disk', disk.uuid);
  if ('rate' in demand) query.set('rate', String(demand.rate));
  else query.set('title', demand.title);
  query.set('disks', String(disks));
  if (memory !== null) query.set('memory', String(memory));
  if (readSize !== null) query.set('read_size', String(readSize));
  if (policy !== null) query.set('policy', policy);
  if (popularity !== null) {
    query.set('titles', String(popularity.titles));
    query.set('zipf', String(popularity.zipf));
  }
  return `/api/v1/plan?${query}`;
}

export async function loadPlan(question: Question, signal: AbortSignal): Promise<Plan> {
  const address = planAddress(question);
  const plan = Fields.of(await request(address, { signal, timeoutMs: PLAN_TIMEOUT_MS }));
  const best = plan.objectOrNull('best');
  const shared = plan.objectOrNull('shared');
  return {
    disk: plan.text('disk'),
    bitRate: plan.number('bit_rate'),
    memory: plan.numberOrNull('memory'),
    disks: plan.number('disks', question.disks),
    policy: plan.text('policy'),
    guaranteed: plan.flag('guaranteed'),
    ratio: plan.numberOrNull('ratio'),
    rows: plan.neededList('rows', decodeRow),
    best: best && decodeBest(best),
    shared: shared && {
      titles: shared.number('titles'),
      readSize: shared.number('read_size'),
      viewers: shared.number('viewers'),
      streams: shared.number('streams'),
      shortOf: shared.textOrNull('short_of'),
    },
  };
}

function decodeRow(row: Fields): PlanRow {
  const admitted = row.objectOrNull('admitted');
  return {
    readSize: row.number('read_size'),
    lasts: row.number('lasts'),
    ozden: row.numberOrNull('ozden'),
    anyPlace: row.numberOrNull('any_place'),
    zoneExact: row.numberOrNull('zone_exact'),
    usual: row.numberOrNull('usual'),
    inMemory: row.numberOrNull('in_memory'),
    admitted: admitted && {
      streams: admitted.number('streams'),
      shortOf: admitted.textOrNull('short_of'),
      memoryBooked: admitted.number('memory_booked'),
      lateReads: admitted.number('late_reads'),
    },
  };
}

function decodeBest(best: Fields): BestPlan {
  const streams = best.number('streams');
  return {
    readSize: best.number('read_size'),
    streams,
    streamsInAll: best.number('streams_in_all', streams),
    shortOf: best.textOrNull('short_of'),
    cycle: best.numberOrNull('cycle'),
    buffer: best.numberOrNull('buffer'),
    memoryNeeded: best.numberOrNull('memory_needed'),
    memoryBooked: best.numberOrNull('memory_booked'),
    startup: best.numberOrNull('startup'),
    startupInRounds: best.numberOrNull('startup_in_rounds'),
  };
}
