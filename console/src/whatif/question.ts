// What the operator asks, as the page keeps it in its address:
//
//   #/what-if?viewers=1000&rate=5000000&model=hdd-20tb&disks=4&memory=17179869184&titles=500&zipf=0.8
//     &pin=...
//
// The names are those of the API. `pin` is such a query, too, of a row that is compared.

import type { Planning, Popularity, Question } from '../api/planning';
import { parseBitRate, parseBytes, parseCount, parseZipf } from './quantities';

/** A question, and how many viewers there are to be. */
export interface WhatIf extends Omit<Question, 'disk'> {
  readonly viewers: number;
  /** `null`: the first disk of the server's list. */
  readonly disk: Question['disk'] | null;
}

/** Each pinned row costs a plan, and the address has a length. */
export const MOST_PINS = 8;
/** A disk of the present, if the server has it. */
const USUAL_MODEL = 'hdd-20tb';

const START: WhatIf = {
  viewers: 1000,
  demand: { rate: 5_000_000 },
  disk: null,
  disks: 4,
  memory: 16 * 2 ** 30,
  readSize: null,
  policy: null,
  popularity: null,
};

/** What is proposed where viewers share titles. */
export const USUAL_POPULARITY: Popularity = { titles: 1000, zipf: 0.8 };

/** The question that a query states; what it leaves out or states wrongly is as at first. */
export function parseWhatIf(query: string): WhatIf {
  const given = new URLSearchParams(query);
  const [uuid, model, title] = ['disk', 'model', 'title'].map((name) => given.get(name) ?? '');
  const rate = given.get('rate') ?? '';
  const disk = uuid ? { uuid } : model ? { model } : START.disk;
  return {
    viewers: parseCount(given.get('viewers') ?? '') ?? START.viewers,
    demand: title ? { title } : { rate: number(rate, parseBitRate) ?? 5_000_000 },
    disk,
    disks: parseCount(given.get('disks') ?? '') ?? START.disks,
    memory: parseMemory(given.get('memory')),
    readSize: number(given.get('read_size') ?? '', parseBytes) ?? null,
    policy: given.get('policy') || null,
    popularity: parsePopularity(given),
  };
}

/** The queries of the pinned rows. */
export function parsePins(query: string): string[] {
  return [...new Set(new URLSearchParams(query).getAll('pin'))].slice(0, MOST_PINS);
}

/** The query of a question. */
export function queryOf(asked: WhatIf, pins: readonly string[] = []): string {
  const { viewers, demand, disk, disks, memory, readSize, policy, popularity } = asked;
  const query = new URLSearchParams({ viewers: String(viewers) });
  if ('rate' in demand) query.set('rate', String(demand.rate));
  else query.set('title', demand.title);
  if (disk && 'model' in disk) query.set('model', disk.model);
  else if (disk) query.set('disk', disk.uuid);
  query.set('disks', String(disks));
  query.set('memory', memory === null ? UNLIMITED : String(memory));
  if (readSize !== null) query.set('read_size', String(readSize));
  if (policy !== null) query.set('policy', policy);
  if (popularity !== null) {
    query.set('titles', String(popularity.titles));
    query.set('zipf', String(popularity.zipf));
  }
  pins.forEach((pin) => query.append('pin', pin));
  return query.toString();
}

/** The question for the server; `null` where there is no disk to ask about. */
export function questionOf(asked: WhatIf, planning: Planning): Question | null {
  const { models, policies } = planning;
  const model = models.find(({ name }) => name === USUAL_MODEL) ?? models[0];
  const disk = asked.disk ?? (model && { model: model.name });
  if (!disk) return null;
  const { demand, disks, memory, readSize, popularity } = asked;
  const policy = asked.policy ?? policies[0]?.name ?? null;
  return { disk, demand, disks, memory, readSize, policy, popularity };
}

const UNLIMITED = 'unlimited';

function parsePopularity(given: URLSearchParams): Popularity | null {
  const titles = parseCount(given.get('titles') ?? '');
  if (titles === undefined) return null;
  const zipf = parseZipf(given.get('zipf') ?? '') ?? USUAL_POPULARITY.zipf;
  return { titles, zipf };
}

function parseMemory(given: string | null): number | null {
  if (given === UNLIMITED) return null;
  return number(given ?? '', parseBytes) ?? START.memory;
}

/** A bare number is in the unit of the API. */
function number(given: string, parse: (typed: string) => number | undefined): number | undefined {
  return /^\d+$/.test(given) ? parseCount(given) : parse(given);
}
