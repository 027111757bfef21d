// A decision in plain words.

import type { Decision } from '../api/decisions';
import { text } from '../text';

/** What was decided and why, without the time by which it would be decided otherwise. */
export function reasonOf(decision: Decision): string {
  const parts = [
    decision.verdict === 'smaller' && decision.offer !== null
      ? text.decisions.smaller(decision.offer)
      : '',
    decision.reason === null ? '' : text.decisions.reason(decision.reason),
    decision.resource === null ? '' : text.decisions.resource(decision.resource),
    decision.detail ?? '',
    decision.preempted.length > 0 ? text.decisions.preempted(decision.preempted.length) : '',
  ];
  return parts.filter((part) => part !== '').join('; ');
}

/** When the viewer starts, or one like it fits; empty where that is not known or is over. */
export function untilOf(decision: Decision, now: number | null): string {
  if (decision.until === null) return '';
  const isStart = decision.verdict === 'later';
  const at = isStart ? text.decisions.startsAt(decision.until) : text.decisions.fitsAt(decision.until);
  const left = now === null ? 0 : decision.until - now;
  return left > 0.5 ? `${at} (${text.decisions.fitsIn(left)})` : at;
}
