// The plans that the page asks for: after a pause, one at a time, and each once.

import { asFailure, Failure } from '../api/failure';
import { loadPlan, type Plan, planAddress, type Question } from '../api/planning';

/** A slider that is dragged asks when it rests. */
const PAUSE_MS = 150;
/** A server makes one plan at a time: another page may be asking. */
const BUSY_RETRIES_MS = [400, 1200];
const MOST_KNOWN = 200;

export class Desk {
  /** Results by address, the oldest first. A failure is known while it is wanted. */
  private known = $state.raw<ReadonlyMap<string, Plan | Failure>>(new Map());
  private wanted: readonly Question[] = [];
  private pausing: ReturnType<typeof setTimeout> | undefined;
  private isWorking = false;
  private ending = new AbortController();

  /** Asks for plans, the most urgent first. Those that were wanted before are so no more. */
  want(questions: readonly Question[]): void {
    const isOther = addressOf(questions[0]) !== addressOf(this.wanted[0]);
    this.wanted = questions;
    const addresses = new Set(questions.map(planAddress));
    const isStale = ([address, result]: [string, Plan | Failure]) =>
      result instanceof Failure && !addresses.has(address);
    if ([...this.known].some(isStale)) {
      this.known = new Map([...this.known].filter((entry) => !isStale(entry)));
    }
    if (isOther) {
      clearTimeout(this.pausing);
      this.pausing = setTimeout(() => {
        this.pausing = undefined;
        void this.work();
      }, PAUSE_MS);
    } else if (this.pausing === undefined) {
      void this.work();
    }
  }

  /** A plan, or why there is none; `undefined` before the answer. */
  result(question: Question): Plan | Failure | undefined {
    return this.known.get(planAddress(question));
  }

  /** Asks again for what has failed. */
  retry(): void {
    this.known = new Map([...this.known].filter(([, result]) => !(result instanceof Failure)));
    void this.work();
  }

  close(): void {
    clearTimeout(this.pausing);
    this.wanted = [];
    this.ending.abort();
  }

  // A plan that is no longer wanted is waited for: the server would go on with it, too.
  private async work(): Promise<void> {
    if (this.isWorking) return;
    this.isWorking = true;
    for (;;) {
      const next = this.wanted.find((question) => !this.known.has(planAddress(question)));
      if (!next || this.pausing !== undefined) break;
      const result = await this.ask(next);
      if (this.ending.signal.aborted) break;
      if (result) this.note(planAddress(next), result);
    }
    this.isWorking = false;
  }

  /** `null`: the question was dropped while the server was busy. */
  private async ask(question: Question): Promise<Plan | Failure | null> {
    const address = planAddress(question);
    for (const pause of [...BUSY_RETRIES_MS, null]) {
      try {
        return await loadPlan(question, this.ending.signal);
      } catch (thrown) {
        const failure = asFailure(thrown);
        if (pause === null || failure.status !== 503) return failure;
        await new Promise((resolve) => setTimeout(resolve, pause));
        if (!this.wanted.some((one) => planAddress(one) === address)) return null;
      }
    }
    return null;
  }

  private note(address: string, result: Plan | Failure): void {
    const entries = [...this.known, [address, result] as const];
    this.known = new Map(entries.slice(-MOST_KNOWN));
  }
}

function addressOf(question: Question | undefined): string {
  return question ? planAddress(question) : '';
}
