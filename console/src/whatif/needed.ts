// How many disks as many viewers need.
//
// Without a limit of memory, the number follows from one disk. With one, more disks have less memory
// each and hold fewer streams each, so that the number is sought: what the disks of one plan hold says
// how many are needed at least, and a plan of as many says whether they suffice.

import type { Plan, Question } from '../api/planning';

export type Needed =
  /** So many suffice. */
  | { readonly disks: number }
  /** The plan that says more. */
  | { readonly ask: Question }
  /** More disks of so little memory do not hold more streams. */
  | { readonly never: true }
  /** It was not found out. */
  | { readonly unknown: true };

/** The most disks that a plan is made for. */
const MOST_DISKS = 10_000;
/** Plans after which the search ends. */
const MOST_PLANS = 5;

/**
 * The fewest disks that hold the viewers, more than those of `plan`, which do not. `planOf` is a plan
 * that was made before; `null`: it failed.
 */
export function disksNeeded(
  viewers: number,
  question: Question,
  plan: Plan,
  planOf: (question: Question) => Plan | null | undefined,
): Needed {
  let streams = plan.best?.streams ?? 0;
  let most = plan.best?.streamsInAll ?? 0;
  for (let made = 0; made < MOST_PLANS; made += 1) {
    if (streams === 0) return { never: true };
    const disks = Math.ceil(viewers / streams);
    if (question.memory === null) return { disks };
    if (disks > MOST_DISKS) return { never: true };
    const next = { ...question, disks };
    const known = planOf(next);
    if (known === undefined) return { ask: next };
    if (known === null) return { unknown: true };
    const inAll = known.best?.streamsInAll ?? 0;
    if (inAll >= viewers) return { disks };
    if (inAll <= most) return { never: true };
    most = inAll;
    streams = known.best?.streams ?? 0;
  }
  return { unknown: true };
}
