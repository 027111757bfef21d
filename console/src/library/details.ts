// Titles with their tracks for the posters of the library: each is asked for once, and few at a
// time, because the server reads a title's index in disk time that no reservation needs.

import { loadTitle, type TitleDetail } from '../api/titles';

const AT_A_TIME = 4;

const known = new Map<string, Promise<TitleDetail>>();
const waiting: (() => void)[] = [];
let running = 0;

export function detailOf(disk: string, name: string, content: string): Promise<TitleDetail> {
  const key = `${content} ${name}`;
  let detail = known.get(key);
  if (!detail) {
    detail = inTurn(() => loadTitle(disk, name, new AbortController().signal));
    known.set(key, detail);
    // What failed is asked for again when it is next in sight.
    detail.catch(() => known.delete(key));
  }
  return detail;
}

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= AT_A_TIME) await new Promise<void>((resolve) => waiting.push(resolve));
  running += 1;
  try {
    return await work();
  } finally {
    running -= 1;
    waiting.shift()?.();
  }
}
