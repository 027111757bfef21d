// A change of a title on all disks that have a copy: each disk is asked on its own.

import { asFailure, Failure } from '../api/failure';
import { text } from '../text';

/** Makes the change disk by disk. A failure says on how many disks it was done. */
export async function onEachDisk(
  disks: readonly string[],
  change: (disk: string) => Promise<unknown>,
): Promise<void> {
  let done = 0;
  for (const disk of disks) {
    try {
      await change(disk);
      done += 1;
    } catch (thrown) {
      const { kind, message, status, hint, retryAfter, word } = asFailure(thrown);
      const told = done > 0 ? `${message}. ${text.title.partly(done, disks.length)}` : message;
      throw new Failure(kind, told, status, hint, retryAfter, word);
    }
  }
}
