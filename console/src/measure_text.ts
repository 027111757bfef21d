// All texts of the page Measure, which only the meter's own console loads.

import * as show from './format';
import { many, quoted } from './text';

export const measureText = {
  start: {
    heading: 'New measurement',
    kind: 'Question',
    kinds: {
      capacity: 'How many streams does it hold?',
      run: 'Does it hold this number of streams?',
    },
    profile: 'Format of the streams',
    profileOf: (title: string, name: string, rate: number) =>
      `${title} (${name}, ${show.shortBitRate(rate)})`,
    storage: 'Storage',
    storages: {
      model: 'A simulated disk',
      path: 'A directory, a file or a device',
      none: 'No storage: the meter itself',
    },
    model: 'Model of the disk',
    path: 'Path',
    pathHint: (allowed: readonly string[]) =>
      allowed.length === 0
        ? 'This console may use no directory. Start it with --allow DIR to measure in one.'
        : `Inside ${allowed.map(quoted).join(' or ')}. In a directory, files are made and removed ` +
          'afterwards; a file or a device is only read.',
    size: 'Size of the files together, in GiB',
    sizeHint: 'More than the caches on the path hold.',
    streams: 'Streams',
    most: 'Most streams that are tried',
    duration: 'Length of a run, in seconds',
    durationHint: 'Empty: as on the command line.',
    confirm: 'Length of the last run, in seconds',
    confirmHint:
      'The number that was found has to hold so long. Empty: on a simulated disk a day of its time.',
    name: 'Name of the report',
    nameHint: 'Empty: made from what is measured.',
    start: 'Start',
    isBusy: 'A measurement runs. Another one can start when it has ended.',
  },

  now: {
    heading: 'Measurement',
    on: (profile: string, target: string) => `${quoted(profile)} on ${quoted(target)}`,
    running: (elapsed: number) => `Measuring for ${show.span(elapsed)}`,
    stopping: 'Stopping',
    preparing: 'Preparing',
    results: {
      held: 'Held',
      'not-held': 'Not held',
      invalid: 'No valid result, or stopped early',
      failed: 'Failed',
    },
    stop: 'Stop',
    open: 'Open the report',
    streams: 'Streams now',
    rate: 'Rate',
    ofAsked: (rate: number) => `of ${show.bitRate(rate)}`,
    response: '99 % of responses within',
    inTime: (allowed: number) => `in time is ${show.response(allowed)}`,
    late: 'Late frames',
    ofFrames: (frames: number) => `of ${show.count(frames)} in this run`,
    byMeter: (late: number) => `${show.count(late)} by this machine`,
    progress: (elapsed: number, duration: number) =>
      `${show.span(elapsed)} of ${show.span(duration)} of this run`,
    fill: (done: number, total: number) => `${show.bytes(done)} of ${show.bytes(total)}`,
    lines: 'What happened',
    kinds: { run: 'Run', note: 'Note', error: 'Error', hint: 'Hint' } as Readonly<
      Record<string, string>
    >,
  },

  plots: {
    seconds: 'seconds since the start',
    rate: 'Rate',
    rateUnit: 'Mb/s',
    asked: 'asked for',
    came: 'came',
    responses: '99 % of responses within',
    milliseconds: 'milliseconds',
    response: '99 % within',
    inTime: 'in time',
    longest: 'The longest response of each second',
    search: 'Rate by number of streams',
    streams: 'streams',
    of: (mark: string, name: string) => `${mark}: ${name}`,
    notHeld: (mark: string, name: string) => `${mark}: ${name}, not held`,
  },

  reports: {
    heading: 'Reports',
    none: 'There is no report in this directory yet.',
    noneHint: (directory: string) =>
      `Start a measurement above, or write one to ${quoted(directory)} with tenuto meter run --out.`,
    in: (directory: string) => `Kept in ${quoted(directory)}`,
    table: 'Reports with their results',
    columns: { pick: 'Compare', name: 'Report', what: 'Measured', result: 'Result', at: 'Ended' },
    pick: (name: string) => `Compare ${quoted(name)}`,
    kinds: { run: 'Run', capacity: 'Capacity', other: 'Other' },
    holds: (streams: number) => `holds ${many(streams, 'stream', 'streams')}`,
    holdsNone: 'holds not one stream',
    held: (streams: number) => `${many(streams, 'stream', 'streams')} held`,
    notHeld: (streams: number, late: number, frames: number) =>
      `${many(streams, 'stream', 'streams')} not held: ${show.count(late)} of ` +
      `${show.count(frames)} frames late`,
    invalid: 'not valid',
    incomplete: 'stopped early',
    open: 'Open',
    openName: (name: string) => `Open ${quoted(name)} in a new tab`,
    remove: 'Remove',
    removeName: (name: string) => `Remove ${quoted(name)}`,
    removeTitle: (name: string) => `Remove ${quoted(name)}?`,
    removeWarning: 'Its directory is removed with all figures and logs. This cannot be undone.',
    compare: 'Compare the two',
    chooseTwo: (chosen: number) =>
      chosen === 0 ? 'Choose two reports to compare them.' : 'Choose one more report.',
    tooMany: 'Choose two reports only.',
  },

  comparison: {
    heading: 'Comparison',
    close: 'Close the comparison',
    loading: 'Comparing.',
    table: 'Figures of both',
    columns: { figure: 'Figure', difference: 'B against A', verdict: 'Verdict' },
    names: {
      late: 'Late frames',
      slowest: 'Longest response of a second, mean',
      response: 'Response, mean',
      rate: 'Rate',
    } as Readonly<Record<string, string>>,
    verdicts: {
      better: 'better',
      worse: 'worse',
      'no-difference-shown': 'may be chance',
    } as Readonly<Record<string, string>>,
    streams: 'Streams held',
    range: (low: string, high: string) => `${low} to ${high}`,
    differ: (what: readonly string[]) =>
      `The two were not asked the same: they differ in ${what.join(', ')}.`,
    explained: 'With 95 % confidence all differences lie in their ranges.',
  },

  about: (version: string) => `Version ${version}`,
};
