// The titles that a field offers to choose from: the first ones, or those that are searched for.

import { loadTitles } from './api/titles';
import { Polled } from './polled.svelte';

/** Titles in a field, at most: others are found by a part of their names. */
const CHOICES = 500;
/** Pages of a search, which each may have looked at 10,000 names in vain. */
const MOST_PAGES = 10;

export class TitleChoices {
  /** A part of the names. */
  search = $state('');
  /** Whether the server has more titles than a field has. */
  isLong = $state(false);
  private readonly polled: Polled<string[]>;

  constructor(periodMs: number) {
    this.polled = new Polled((signal) => this.load(signal), periodMs);
  }

  /** Titles that can be played; `null` until they are known. */
  get names(): readonly string[] | null {
    return this.polled.value;
  }

  /** Loads now, periodically, and with each change of the search, in an effect. Returns what ends that. */
  start(): () => void {
    void this.search;
    return this.polled.start();
  }

  private async load(signal: AbortSignal): Promise<string[]> {
    const search = this.search.trim();
    const names: string[] = [];
    let after: string | null = null;
    for (let pages = 0; pages < MOST_PAGES && names.length < CHOICES; pages++) {
      const limit = CHOICES - names.length;
      const page = await loadTitles({ after, search, limit }, signal);
      names.push(...page.titles.filter(({ isMedia }) => isMedia).map(({ name }) => name));
      after = page.next;
      if (after === null) break;
    }
    if (search === '') this.isLong = after !== null;
    return names;
  }
}
