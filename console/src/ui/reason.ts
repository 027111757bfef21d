// What a failure says to people.

import type { Failure } from '../api/failure';
import { text } from '../text';

/** Why a request failed and what to do, in sentences. */
export function sentenceOf(failure: Failure): string {
  switch (failure.kind) {
    case 'silent':
      return text.failure.silent;
    case 'unreadable':
      return text.failure.unreadable(failure.message);
    default:
      return [failure.message, failure.hint].filter((part) => part !== '').map(asSentence).join(' ');
  }
}

/** A message of the server, which has no capital and no full stop, as a sentence. */
export function asSentence(part: string): string {
  const capital = part.charAt(0).toLocaleUpperCase() + part.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}
