// All texts of the console but those of the pages Cluster and Measure, which a server's page does not
// load. Another language is another table of the same shape.

import type { SharedPlan } from './api/planning';
import * as show from './format';

/** A title's name within a sentence. The isolates keep a name's direction out of the sentence. */
export const quoted = (name: string) => `“\u2068${name}\u2069”`;
/** A number with its noun. */
export const many = (number: number, one: string, more: string) =>
  `${show.count(number)} ${number === 1 ? one : more}`;

const resources: Readonly<Record<string, string>> = {
  disk: 'disk time',
  memory: 'memory',
  network: 'network rate',
};

/** Causes of a refusal, and of the end of a session. */
const reasons: Readonly<Record<string, string>> = {
  sessions: 'other sessions hold what it needs',
  'slow-disk': 'a disk is slower than its calibration',
  'less-memory': 'the server has less memory than at its start',
  title: 'the title needs more than the server has, also without other sessions',
  'disk-lost': 'the disk is lost',
  background: 'background work has the disk',
  server: 'the server is stopping or full, or the title is being removed',
  fills: 'caches have as many fills under way as they may',
  priority: 'a viewer of a higher priority took its place',
  overload: 'its disk is too slow for all sessions',
};

const subjects: Readonly<Record<string, string>> = {
  session: 'A viewer',
  fill: 'A fill of a cache',
  seek: 'A seek',
  end: 'A session',
};

export const text = {
  app: {
    name: 'Tenuto',
    skip: 'Skip to the content',
    pages: 'Pages',
    now: 'Now',
    titles: 'Library',
    whatIf: 'What if',
    cluster: 'Cluster',
    measure: 'Measure',
    theme: (theme: string) =>
      `Colours: ${{ light: 'light', dark: 'dark' }[theme] ?? 'as the system'}`,
    version: (version: string) => `Version ${version}`,
    up: (uptime: number) => `up ${show.span(uptime)}`,
    stopping: 'Stopping: the server admits no new session.',
    close: 'Close',
    cancel: 'Cancel',
    retry: 'Try again',
    unknown: '–',
    loading: 'Loading the page.',
    notLoaded: 'This page could not be loaded from the server.',
  },

  link: {
    state: {
      connecting: 'Connecting',
      live: 'Live',
      lost: 'No connection',
      denied: 'Not permitted',
    },
    lostFor: (seconds: number) =>
      `No connection to the server for ${show.span(seconds)}. The values below are the last ones ` +
      'known. This page tries again by itself.',
    lostHint: 'Check that the server runs: tenuto serve STORE',
    unreadable: (seconds: number) =>
      `The server has sent nothing that this page understands for ${show.span(seconds)}. It may ` +
      'be of another version: load the page again.',
    failing: (reason: string) => `The server reports an error: ${reason}`,
    ofDirector: {
      lostFor: (seconds: number) =>
        `No connection to the director for ${show.span(seconds)}. The values below are the last ` +
        'ones known. This page tries again by itself.',
      lostHint:
        'Viewers who play are not affected, and other directors serve new ones. Check that this ' +
        'one runs: tenuto director',
      unreadable: (seconds: number) =>
        `The director has sent nothing that this page understands for ${show.span(seconds)}. It ` +
        'may be of another version: load the page again.',
      failing: (reason: string) => `The director reports an error: ${reason}`,
    },
    ofMeter: {
      lostFor: (seconds: number) =>
        `No connection to the meter for ${show.span(seconds)}. The values below are the last ones ` +
        'known. This page tries again by itself.',
      lostHint: 'Its measurement has ended with it. Start it again: tenuto meter console',
      unreadable: (seconds: number) =>
        `The meter has sent nothing that this page understands for ${show.span(seconds)}. It may ` +
        'be of another version: load the page again.',
      failing: (reason: string) => `The meter reports an error: ${reason}`,
    },
    denied: 'The server does not permit this page to read its state.',
    deniedHint:
      'Make an operator’s token with “tenuto token KEYS --operator”, and open this page as ' +
      '/console/?token=TOKEN.',
    deniedAgain:
      'The token of this page has expired, or is not an operator’s. The values below are the ' +
      'last ones known.',
  },

  failure: {
    silent: 'No response from the server.',
    unreadable: (reason: string) => `The response cannot be understood: ${reason}.`,
    absent: 'The server does not have this, or is too old for it.',
  },

  sentence: {
    heading: 'Room for viewers',
    choose: 'Title',
    fits: (number: number, atLeast: boolean, title: string) =>
      `${atLeast ? 'At least ' : ''}${many(number, 'more viewer', 'more viewers')} of ` +
      `${quoted(title)} ${number === 1 ? 'fits' : 'fit'} now.`,
    full: (title: string) => `No more viewer of ${quoted(title)} fits now.`,
    next: (reason: string) => `For one more: ${reason}.`,
    until: (seconds: number, at: number) =>
      seconds > 0.5
        ? `One fits in ${show.span(seconds)}, at ${show.clockTime(at)}.`
        : 'One fits about now.',
    noTitles: 'The library has no titles yet.',
    noTitlesHint: 'Add one on the page Library, or with tenuto ingest STORE FILE.',
    noAnswer: (sessions: number) =>
      `${many(sessions, 'session', 'sessions')} now. This server does not report how many more fit.`,
    loading: 'Counting the viewers who fit.',
  },

  totals: {
    heading: 'Server',
    sessions: 'Sessions',
    holding: (active: number) => `${show.count(active)} hold a reservation`,
    admitted: 'Admitted',
    refused: 'Refused',
    refusedBy: (refused: { disk: number; memory: number; network: number }) =>
      `disk ${show.count(refused.disk)}, memory ${show.count(refused.memory)}, ` +
      `network ${show.count(refused.network)}`,
    misses: 'Deadline misses',
    met: (met: number) => `${show.count(met)} deadlines met`,
    policy: 'Admission policy',
    slots: (slot: number) => `slots of ${show.count(slot * 1000)} ms`,
    since: 'since the start',
  },

  disks: {
    heading: 'Disks',
    name: (number: number) => `Disk ${number}`,
    lost: 'lost',
    missing: 'missing',
    draining: 'draining',
    provisional: 'provisional guarantee',
    provisionalHint: 'Too little was stored on the disk when it was calibrated.',
    slowdown: (part: number) => `${show.percent(part)} slower than calibrated`,
    due: 'due',
    ahead: 'read ahead',
    bestEffort: 'best effort',
    writes: 'recordings',
    guarantee: 'guaranteed',
    strip: (disk: string, slots: number, reads: number, guaranteed: number) =>
      `${disk}: reads in each of the last ${show.count(slots)} slots. In the latest ` +
      `${show.count(reads)} of ${show.count(guaranteed)} guaranteed reads.`,
    noSlots: 'No slot has ended yet.',
    latest: 'Latest slot',
    slot: (number: number) => `Slot ${show.count(number)}`,
    readsOf: (reads: number, guaranteed: number) =>
      `${show.count(reads)} of ${show.count(guaranteed)} guaranteed reads`,
    kinds: (slot: { due: number; ahead: number; bestEffort: number; writes: number }) =>
      `${show.count(slot.due)} due, ${show.count(slot.ahead)} read ahead; ` +
      `${show.count(slot.bestEffort)} best effort, ${many(slot.writes, 'write', 'writes')} of recordings`,
    sessions: 'Sessions',
    guaranteed: 'Guaranteed',
    guaranteedReads: (reads: number, size: number) =>
      `${many(reads, 'read', 'reads')} of ${show.bytes(size)} per slot`,
    booked: 'Booked by sessions',
    used: 'Used, mean of 10 s',
    usedReads: (reads: number, part: number) =>
      `${show.count(reads)} per slot (${show.percent(part)})`,
    slack: 'Slack',
    slackReads: (reads: number) => many(reads, 'read', 'reads'),
    slackTime: (seconds: number) => show.seconds(seconds),
    speed: 'Speed',
    asCalibrated: 'as calibrated',
    recordings: 'Recordings',
    recordingShare: (number: number, share: number) =>
      `${show.count(number)}, with ${show.percent(share)} of the disk’s time`,
    failures: 'Failed reads',
    method: 'Read by',
  },

  memory: {
    heading: 'Memory',
    bar: (used: number, limit: number) =>
      `${show.bytes(used)} of ${show.bytes(limit)} read buffers in use`,
    used: 'In use',
    limit: 'Read buffers',
    target: 'Limit now',
    intervals: 'Kept for followers',
    shared: 'Reads saved by sharing',
  },

  network: {
    heading: 'Network',
    now: 'Sending now',
    sent: 'Sent',
    connections: 'Connections',
    chart: (rate: number) =>
      `Rate of what was sent in the last minutes. Now ${show.bitRate(rate)}.`,
    time: 'Time',
    rate: 'Mb/s',
  },

  sessions: {
    heading: 'Sessions',
    filter: 'Filter by title, store, number, priority or token',
    columns: {
      session: 'Session',
      title: 'Title',
      position: 'Position',
      rendition: 'Rendition',
      ahead: 'Ahead',
      slack: 'Least slack',
      drift: 'Drift',
      late: 'Late pieces',
      age: 'Age',
      buffered: 'Buffered',
      delivered: 'Delivered',
      playerRate: 'Player rate',
      priority: 'Priority',
      subject: 'Subject',
      tokenId: 'Token',
      store: 'Store',
    },
    position: (at: number, of: number) => `${show.position(at)} of ${show.position(of)}`,
    priority: (priority: string) => ({ low: 'low', normal: 'normal', high: 'high' })[priority] ?? priority,
    startsIn: (seconds: number) => `starts in ${show.span(seconds)}`,
    fill: 'fill',
    mount: 'mount',
    sentTo: (address: string) => `to ${address}`,
    shown: (shown: number, total: number) =>
      shown === total
        ? many(total, 'session', 'sessions')
        : `${show.count(shown)} of ${many(total, 'session', 'sessions')}`,
    listed: (listed: number) => `The server lists the oldest ${show.count(listed)}.`,
    none: 'No sessions. A session begins when a player opens a title.',
    noMatch: 'No session matches the filter.',
    end: 'End',
    endOne: (number: number) => `End session ${number}`,
    endTitle: (number: number) => `End session ${number}?`,
    endWarning: (title: string) =>
      `Its viewer of ${quoted(title)} cannot play on. The place is free at once.`,
    endConfirm: 'End the session',
    table: 'Sessions; scrolls',
    actions: 'Actions',
  },

  decisions: {
    heading: 'Latest decisions',
    none: 'No decisions yet.',
    ago: (seconds: number) => (seconds < 1 ? 'now' : `${show.span(seconds)} ago`),
    verdict: (verdict: string) =>
      ({
        admitted: 'admitted',
        smaller: 'smaller',
        later: 'later',
        refused: 'refused',
        ended: 'ended',
      })[verdict] ?? verdict,
    subject: (subject: string, title: string) =>
      `${subjects[subject] ?? subject} of ${quoted(title)}`,
    session: (number: number) => `session ${number}`,
    reason: (reason: string) => reasons[reason] ?? reason,
    smaller: (offer: number) => `admitted to rendition ${offer + 1}, counted from the best`,
    startsAt: (at: number) => `starts at ${show.clockTime(at)}`,
    fitsAt: (at: number) => `one fits at ${show.clockTime(at)}`,
    fitsIn: (seconds: number) => `in ${show.span(seconds)}`,
    resource: (resource: string) => `short of ${resources[resource] ?? resource}`,
    preempted: (number: number) =>
      `${many(number, 'session of a lower priority', 'sessions of a lower priority')} ended for it`,
    priority: (priority: string) => `priority ${priority}`,
    allShown: (shown: number) => `The latest ${show.count(shown)}.`,
  },

  titles: {
    heading: 'Library',
    filter: 'Filter by name',
    search: 'Search titles',
    count: (shown: number, total: number) =>
      shown === total
        ? many(total, 'title', 'titles')
        : `${show.count(shown)} of ${many(total, 'title', 'titles')}`,
    /** `isMost`: a title with copies on several disks counts more than once. */
    first: (shown: number, total: number, isMost: boolean) =>
      `The first ${show.count(shown)} of ${isMost ? 'up to ' : ''}${many(total, 'title', 'titles')}`,
    /** `hasMore`: not all names were looked at. */
    found: (shown: number, hasMore: boolean, total: number, isMost: boolean) =>
      `${hasMore ? 'At least ' : ''}${show.count(shown)} of ` +
      `${isMost ? 'up to ' : ''}${many(total, 'title', 'titles')}`,
    searchFurther: 'Search further',
    none: 'The library has no titles yet.',
    noneHint: 'Drop a media file on this page, or run tenuto ingest STORE FILE.',
    noMatch: 'No title matches the filter.',
    more: (number: number) => `Show ${many(number, 'more title', 'more titles')}`,
    viewers: (number: number) => many(number, 'viewer', 'viewers'),
    tracks: (number: number) => many(number, 'track', 'tracks'),
    copies: (number: number) => many(number, 'copy', 'copies'),
    file: 'file',
    disksFailed: (failed: number) =>
      `${many(failed, 'disk does', 'disks do')} not list titles now.`,
    space: (free: number, all: number) => `${show.bytes(free)} of ${show.bytes(all)} free`,
    disks: 'Space',
  },

  recordings: {
    heading: 'Recordings',
    since: (seconds: number) => `for ${show.span(seconds)}`,
    ended: 'The recording has ended.',
    waits: 'waits for its input',
    end: 'End',
    endOne: (title: string) => `End the recording ${quoted(title)}`,
    endTitle: (title: string) => `End the recording ${quoted(title)}?`,
    endWarning: 'What has come becomes a title. The input is not recorded further.',
    endConfirm: 'End the recording',
  },

  drain: {
    heading: 'Drain',
    waits: 'Not drained yet. The disk waits for:',
    done: 'Drained: no session is read from the disk, and no title is written to it.',
    sessions: (number: number) => many(number, 'session', 'sessions'),
    recording: (title: string) => `the recording ${quoted(title)}, until it is ended`,
    ingest: (kind: string, title: string | null, waitsAt: string | null) => {
      if (waitsAt !== null)
        return `the file ${quoted(waitsAt)} of its mount, until it is renamed, written or removed`;
      const what = kind === 'copy' ? 'the copy of' : 'the ingest of';
      return title === null ? 'the repair of its store' : `${what} ${quoted(title)}`;
    },
    onlyHere: (number: number) =>
      `${many(number, 'title has', 'titles have')} no copy on another disk.`,
  },

  title: {
    back: 'All titles',
    missing: (name: string) => `There is no title ${quoted(name)} on this disk.`,
    missingHint: 'It may have been renamed or removed. The page Library lists all titles.',
    duration: 'Duration',
    rate: 'Mean rate',
    size: 'Size',
    ingested: 'Ingested',
    viewers: 'Viewers now',
    tracks: 'Tracks',
    texts: 'Subtitles and captions',
    noTexts: 'No subtitles.',
    copies: 'Copies',
    copyHere: 'shown here',
    otherContent: 'other content under the same name',
    lost: 'disk lost',
    draining: 'disk draining',
    ready: 'ready',
    trackColumns: {
      number: 'Track',
      kind: 'Kind',
      codec: 'Codec',
      language: 'Language',
      format: 'Format',
      rate: 'Rate',
      size: 'Size',
      extents: 'Extents',
    },
    textColumns: {
      number: 'Text',
      language: 'Language',
      name: 'Name',
      marks: 'Marks',
      cues: 'Cues',
    },
    copyColumns: { store: 'Store', state: 'State' },
    kind: (kind: string) => ({ video: 'video', audio: 'audio', file: 'file' })[kind] ?? kind,
    picture: (width: number, height: number) => `${width} × ${height}`,
    sound: (rate: number, channels: number) =>
      `${show.count(rate)} Hz, ${many(channels, 'channel', 'channels')}`,
    markDefault: 'default',
    markForced: 'forced',
    markHearing: 'for viewers who do not hear',
    map: 'Place on the disk',
    mapLabel: (pieces: number, disk: string) =>
      `${many(pieces, 'extent', 'extents')} of this title on ${disk}, from the start of the disk ` +
      'at the top left to its end at the bottom right.',
    mapRow: (size: number) => `Each row is ${show.bytes(size)} of the disk.`,
    track: (number: number, kind: string) => `${kind} ${number}`,
    demand: 'Demand',
    demandLabel: (most: number) =>
      `Bit rate of the title over its time; at most ${show.bitRate(most)}.`,
    position: 'Position',
    demandRate: 'Mb/s',
    rename: 'Rename',
    renameTitle: (name: string) => `Rename ${quoted(name)}`,
    newName: 'New name',
    renameNote: (copies: number) =>
      copies > 1 ? `All ${show.count(copies)} copies get the new name.` : '',
    remove: 'Remove',
    removeTitle: (name: string) => `Remove ${quoted(name)}?`,
    removeWarning: (copies: number) =>
      copies > 1
        ? `All ${show.count(copies)} copies are removed. This cannot be undone. Sessions that play ` +
          'the title go on to their end.'
        : 'This cannot be undone. Sessions that play the title go on to their end.',
    removeConfirm: 'Remove the title',
    partly: (done: number, all: number) =>
      `Done on ${show.count(done)} of ${show.count(all)} disks.`,
    play: 'Play',
  },

  player: {
    heading: 'Player',
    region: (name: string) => `Player of ${quoted(name)}`,
    requesting: 'Requesting admission',
    waiting: (seconds: number) => `Admitted; starts in ${show.span(seconds)}`,
    stop: 'Stop',
    play: 'Play',
    pause: 'Pause',
    rewind: (speed: number) => (speed < 0 ? `Rewind: ${show.count(-speed)}×` : 'Rewind'),
    forward: (speed: number) =>
      speed > 0 ? `Fast forward: ${show.count(speed)}×` : 'Fast forward',
    windRefused: (reason: string) =>
      `The server does not wind this title now${reason === '' ? '' : `: ${reason}`}. It plays on.`,
    mute: 'Mute',
    unmute: 'Unmute',
    fullScreen: 'Full screen',
    seek: 'Position',
    position: (at: number, duration: number) =>
      `${show.position(at)} of ${show.position(duration)}`,
    rendition: 'Rendition',
    automatic: 'automatic',
    level: (height: number, rate: number) =>
      height > 0 ? `${height} lines, ${show.bitRate(rate)}` : show.bitRate(rate),
    audio: 'Sound',
    subtitles: 'Subtitles',
    off: 'off',
    refused: 'Refused',
    fitsIn: (seconds: number) => `The server expects room in ${show.span(seconds)}.`,
    fitsNow: 'The server expects room now.',
    ended: 'The title has ended. Its place was given back.',
    seekRefused: (reason: string) =>
      `The server has refused to continue from here: ${reason} The player tries again.`,
    gone: 'The server has ended this session. Play the title again to begin a new one.',
    noDecoder: (name: string) =>
      `This browser has no decoder for ${quoted(name)}. VLC and mpv may play it.`,
    noMediaSource: 'This browser cannot play segments. VLC and mpv can.',
    failed: (reason: string) => `Playback failed: ${reason}.`,
    pressPlay: 'The browser starts sound only after a click: press Play.',
    notLoaded: 'The player could not be loaded. Load the page again.',
    cost: 'What this session costs',
    costWaiting: 'The server lists the session after its player’s first report.',
    session: 'Session',
    store: 'Read from',
    buffered: 'Buffered by the server',
    delivered: 'Delivered',
    guaranteedSlack: 'Slack guaranteed',
    observedSlack: 'Slack observed, least',
    late: 'Late pieces',
    drift: 'Drift',
    ahead: 'Buffered by the player',
    stalls: 'Stalls',
    shown: 'Rendition shown',
  },

  upload: {
    heading: 'Add titles',
    drop: 'Drop media files here, or',
    choose: 'choose files',
    disk: 'Disk',
    name: 'Title name',
    nameOf: (file: string) => `Title name for ${file}`,
    start: 'Upload',
    startOne: (name: string) => `Upload ${name}`,
    remove: 'Remove from the list',
    removeOne: (name: string) => `Remove ${name} from the list`,
    cancelOne: (name: string) => `Cancel the upload of ${name}`,
    thumbnails: 'Make thumbnails',
    asFile: 'Store as a plain file',
    address: 'or the address of a file, which the server downloads:',
    addAddress: 'Add',
    ready: (from: string, size: number | null) =>
      size === null ? `${from}, ready to download` : `${show.bytes(size)}, ready to upload`,
    sending: (sent: number, all: number | null) =>
      all === null
        ? `${show.bytes(sent)} have come`
        : `${show.percent(sent / Math.max(1, all))}: ${show.bytes(sent)} of ${show.bytes(all)}`,
    ingesting: 'All of it is there. The server ingests it in time that no reservation needs.',
    done: 'In the library.',
    leftOut: (parts: readonly string[]) => `Left out: ${parts.join('; ')}`,
    cancelled: 'Cancelled.',
    broken:
      'The connection ended before the server answered. It may have refused the file, or it may ' +
      'not run any more.',
    noDisk: 'The server has no disk to upload to.',
    progress: (name: string) => `Upload of ${name}`,
  },

  whatIf: {
    heading: 'What if',
    intro:
      'How many viewers would other disks, memory and settings hold? The server computes it as ' +
      'tenuto plan does. Nothing is read or changed.',
    settings: 'Settings',
    viewers: 'Viewers wanted',
    viewersError: 'Write a whole number, such as 1000.',
    choose: 'Viewers watch',
    ownTitle: 'a title each',
    sharedTitles: 'popular titles, and share reads',
    titles: 'Number of titles',
    titlesError: 'Write a whole number, such as 1000.',
    zipf: 'Popularity (exponent of Zipf’s law)',
    zipfError: 'Write a number from 0 (all equally popular) to 10, such as 0.8.',
    demand: 'A stream is',
    constantRate: 'a constant rate',
    titlesOfServer: 'Titles of this server',
    rate: 'Rate of a stream',
    rateError: 'Write a rate with its unit, such as 5 Mb/s.',
    disk: 'Kind of disk',
    diskKinds: (kind: string) =>
      ({ hdd: 'Hard disks', ssd: 'Solid-state disks' })[kind] ?? 'Other models',
    disksOfServer: 'Disks of this server',
    otherServer: (name: string) => `${name} (not on this server)`,
    disks: 'Number of disks',
    disksError: 'Write a whole number, such as 4.',
    memory: 'Memory for read buffers, of all disks',
    memoryError: 'Write a size with its unit, such as 4 GiB, or “unlimited”.',
    unlimited: 'unlimited',
    /** Typed for memory without a limit, in lower case. */
    unlimitedWords: ['unlimited', '∞', ''],
    readSize: 'Read size',
    bestSize: 'best',
    policy: 'Admission policy',
    policies: (guaranteed: boolean) => (guaranteed ? 'Guaranteed' : 'Not guaranteed'),
    waiting: 'Computing the new answer.',
    tooOld: 'This server makes no plans: it is too old for it.',
    tooOldHint: 'On the command line: tenuto plan --model hdd-20tb --rate 5Mbps',
    noDisks: 'This server knows no disk models and has no disks.',
    noDisksHint: 'On the command line: tenuto plan --model FILE --rate 5Mbps',

    answer: 'Answer',
    streamsOf: (number: number, rate: number, title: string | null) =>
      title === null
        ? `${many(number, 'stream', 'streams')} of ${show.shortBitRate(rate)}`
        : `${many(number, 'viewer', 'viewers')} of ${quoted(title)}`,
    holds: (disks: number, streams: string) =>
      `${many(disks, 'disk of this kind holds', 'disks of this kind hold')} ${streams}`,
    enough: (viewers: number, more: number) =>
      more === 0
        ? `${many(viewers, 'viewer fits', 'viewers fit')}, and none more.`
        : `${many(viewers, 'viewer fits', 'viewers fit')}, and ${show.count(more)} more.`,
    need: (viewers: number, disks: number) =>
      `${many(viewers, 'viewer needs', 'viewers need')} ${many(disks, 'disk', 'disks')}.`,
    tooMany: (viewers: number) => `${many(viewers, 'viewer does', 'viewers do')} not fit.`,
    none: (rate: string) => `A disk of this kind holds no stream of ${rate} with these settings.`,
    noneTitle: (title: string) =>
      `A disk of this kind holds no viewer of ${quoted(title)} with these settings.`,
    noneHint: 'Choose more memory, another read size, another policy or a lower rate.',
    first: (resource: string | null) =>
      resource === null
        ? 'Nothing is full: the plan ended before a viewer was refused.'
        : ({
            disk: 'The disks are full first.',
            memory: 'The memory is full first.',
            network: 'The network is full first.',
          }[resource] ?? `Short of ${resource} first.`),
    memoryFirst:
      'More disks do not help: they share this memory. More memory does, or smaller reads.',
    withMemory: (streams: number, booked: number) =>
      `Without a limit of memory the same disks hold ${show.count(streams)} and book up to ` +
      `${show.bytes(booked)}.`,
    shared: ({ viewers, titles, streams, shortOf }: SharedPlan) =>
      `Together about ${many(viewers, 'viewer', 'viewers')} of ` +
      `${many(titles, 'title', 'titles')} within two hours: ` +
      `${many(streams, 'stream', 'streams')} of the disks, and ` +
      `${show.count(Math.max(0, viewers - streams))} who follow another viewer in memory. ` +
      (shortOf === 'memory'
        ? 'Then the memory is full. '
        : 'Then the disks are full. ') +
      'This is an estimate; the server decides on each viewer.',
    sharedNeedsMemory: 'Shared reads depend on memory: choose a size to estimate them.',
    guaranteed: 'Guaranteed: no admitted viewer waits for data.',
    notGuaranteed: (policy: string, late: number) =>
      late > 0
        ? `Not guaranteed: ${policy} admits so many, and in the plan ` +
          `${many(late, 'read was', 'reads were')} late for each disk.`
        : `Not guaranteed: ${policy} admits so many, but a read may be late.`,
    bar: (held: number, wanted: number) =>
      `${show.count(held)} held, ${show.count(wanted)} wanted`,

    facts: 'In numbers',
    factDisk: 'Disk',
    factReads: 'Reads',
    readsLast: (size: number, lasts: number) =>
      `${show.shortBytes(size)}; each holds ${show.seconds(lasts)} of a stream`,
    cycle: 'Service cycle',
    cycleBuffer: (cycle: number, buffer: number | null) =>
      buffer === null
        ? show.seconds(cycle)
        : `${show.seconds(cycle)} at least, with a buffer of ${show.bytes(buffer)} for each stream`,
    memoryNeeded: 'Memory for two reads a stream',
    memoryBooked: 'Memory booked at the peak',
    startup: 'Start-up',
    startupTimes: (startup: number, inRounds: number | null) =>
      inRounds === null
        ? show.seconds(startup)
        : `${show.seconds(startup)} by admission; up to ${show.seconds(inRounds)} in rounds`,
    network: 'Network rate of the wanted viewers',
    networkRate: (rate: number) => `${show.bitRate(rate)}; a plan does not limit it`,

    bounds: 'Streams of one disk by read size',
    lines: {
      admitted: (policy: string) => policy,
      ozden: 'Özden',
      anyPlace: 'any place',
      zoneExact: 'zone-exact',
      usual: 'usual',
      inMemory: 'fit in memory',
      ratio: 'transfer alone',
    },
    chart: (policy: string, streams: number, size: number) =>
      `Streams of one disk by read size, by ${policy} and by the bounds of the literature. The ` +
      `best: ${show.count(streams)} with reads of ${show.shortBytes(size)}. The table has all values.`,
    chartNone: 'Streams of one disk by read size: none with these settings.',
    table: 'Table of these values',
    lasts: 'Lasts',
    shortOf: 'Short of',
    bestMark: 'best',
    legend:
      'Any place and zone-exact are guaranteed by formulas, usual is the mean case, and transfer ' +
      'alone is what a disk without seeks would hold.',

    pin: 'Pin this row',
    pinned: 'Pinned',
    pinnedHint:
      'Pin settings to compare them side by side. The address of this page contains them.',
    allPinned: (most: number) => `${show.count(most)} rows are pinned, the most. Remove one first.`,
    pinColumns: {
      disk: 'Disk',
      disks: 'Number',
      demand: 'Stream',
      memory: 'Memory',
      readSize: 'Read size',
      policy: 'Policy',
      streams: 'Streams',
      wanted: 'Wanted',
      shortOf: 'Short of',
      actions: 'Actions',
    },
    pinTable: 'Pinned settings; scrolls',
    open: (disk: string, number: number) => `${disk}: open row ${number}`,
    unpin: 'Remove',
    unpinOne: (number: number) => `Remove row ${number}`,
    pending: '…',
    resource: (resource: string | null) =>
      resource === null ? 'nothing' : ({ disk: 'disk', memory: 'memory', network: 'network' }[resource] ?? resource),
  },
};
