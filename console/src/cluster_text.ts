// All texts of the page Cluster, which only a director's page loads.

import * as show from './format';
import { many, quoted } from './text';

/** Why a director refuses, as short as a number goes before it. */
const refusals: Readonly<Record<string, string>> = {
  full: 'full',
  headroom: 'kept for the loss of a node',
  'no-copy': 'no copy',
  unreachable: 'unreachable',
  'not-ready': 'not ready',
  'no-title': 'no such title',
  'by-node': 'by the node',
};
const causeOf = (cause: string) => refusals[cause] ?? `\u2068${cause}\u2069`;

/** Names of a list that are written out. */
const MOST_NAMES = 6;
/** Names within a sentence: `n1, n2 and 3 more`. */
const listOf = (names: readonly string[]) => {
  const isLong = names.length > MOST_NAMES;
  const shown = names.slice(0, isLong ? MOST_NAMES - 1 : MOST_NAMES).map((name) => `\u2068${name}\u2069`);
  const rest = names.length - shown.length;
  return shown.join(', ') + (rest > 0 ? ` and ${show.count(rest)} more` : '');
};

export const clusterText = {
  heading: (cluster: string) => (cluster === '' ? 'Cluster' : `Cluster ${quoted(cluster)}`),
  answering: (answering: number, all: number) =>
    all === 0
      ? 'No node is registered'
      : `${show.count(answering)} of ${many(all, 'node answers', 'nodes answer')}`,
  free: (part: number) => `${show.percent(part)} of their disks’ rate is free`,
  minute: (
    seconds: number,
    sent: number,
    refused: readonly (readonly [cause: string, number: number])[],
  ) => {
    const all = refused.reduce((sum, [, number]) => sum + number, 0);
    const causes = refused.map(([cause, number]) => `${show.count(number)} ${causeOf(cause)}`);
    const time = seconds >= 59 ? 'the last minute' : `the last ${show.span(Math.max(1, seconds))}`;
    return (
      `${time}: ${many(sent, 'viewer', 'viewers')} sent, ${show.count(all)} refused` +
      (all > 0 ? ` (${causes.join(', ')})` : '')
    );
  },
  cause: (cause: string) => causeOf(cause),

  trouble: {
    since: (time: string) => `Its last answer was ${time} ago.`,
    etcdRemedy: (endpoint: string) =>
      'Check that most members of etcd run, and that this director reaches them' +
      (endpoint === '' ? '.' : `. It asks \u2068${endpoint}\u2069 now.`),
    unlisted: {
      head: 'The director has not read the records of the cluster from etcd yet.',
      meaning: 'It refuses every viewer until it has. Other directors are not affected.',
    },
    silent: {
      head: 'etcd does not answer.',
      meaning:
        'Viewers who play are not affected. Nodes admit nobody when their leases have ended. The ' +
        'director goes on with what it knew last, so the values below may be old.',
    },
    unread: {
      head: 'The director cannot read from etcd at present.',
      meaning:
        'It goes on with what it knew last and tries again, also at the other members. Viewers ' +
        'are not affected unless it lasts.',
    },
    nodes: {
      head: (names: readonly string[]) =>
        `${listOf(names)} ${names.length === 1 ? 'does' : 'do'} not answer.`,
      meaning:
        'No viewer is sent there. The director tries a node again after 2 s, and no longer lists ' +
        'it when its lease has ended, after 10 s. Viewers of a lost node ask again, and are ' +
        'admitted elsewhere where there is room.',
      remedy:
        'Check that “tenuto serve” runs on the node, that its address is reachable from the ' +
        'director, and that both have the same secret.',
    },
    away: {
      head: (names: readonly string[]) =>
        `${listOf(names)} ${names.length === 1 ? 'is' : 'are'} away.`,
      meaning:
        'The cluster knows them, and they are not registered. After ten minutes their titles get ' +
        'copies at other nodes, where there is room.',
      remedy:
        'Start them again. One that is gone for good can be forgotten: “tenuto cluster forget NODE”.',
      titles: (away: readonly { name: string; titles: number }[]) => {
        const shown = away.slice(0, MOST_NAMES);
        return `${shown.map(({ name, titles }) => `\u2068${name}\u2069 had ${many(titles, 'title', 'titles')}`).join(', ')}.`;
      },
    },
    placement: {
      head: 'The titles of record are not known.',
      meaning:
        'Nodes keep the copies that they have. Titles that were added to the bucket since come to ' +
        'no node, and viewers of those are refused.',
      remedy: 'Check that the bucket and its keys are right, and that this director reaches it.',
    },
    records: {
      head: 'Some records of the cluster cannot be used.',
      meaning: (number: number) =>
        `${many(number, 'record was', 'records were')} left out since the director started. ` +
        'Nodes of a newer version write such records.',
      remedy: 'Give directors and nodes the same version.',
    },
  },

  viewers: {
    heading: 'Viewers',
    sentRate: 'Sent to a node, per second',
    refusedRate: 'Refused, per second',
    line: 'sent',
    sent: 'Viewers sent',
    refused: 'Viewers refused',
    sentChart: (rate: number) =>
      `Viewers per second who were sent to a node, in the last minutes. Now ${rate.toFixed(2)}.`,
    refusedChart: (causes: readonly (readonly [cause: string, rate: number])[]) =>
      'Viewers per second who were refused, by cause, in the last minutes. Now ' +
      `${causes.map(([cause, rate]) => `${causeOf(cause)} ${rate.toFixed(2)}`).join(', ')}.`,
    noneRefused: 'Nobody was refused in the last minutes.',
    none: 'none since the start',
    sinceStart: (number: number) => `${show.count(number)} since the start`,
    byCause: (causes: readonly (readonly [cause: string, number: number])[]) =>
      `${causes.map(([cause, number]) => `${show.count(number)} ${causeOf(cause)}`).join(', ')} ` +
      'since the start',
    questions: 'Questions to nodes',
    answers: (counted: { questions: number; nodeRefusals: number; nodeSilent: number }) =>
      `${show.count(counted.questions)}; in ${show.count(counted.nodeRefusals)} the node had no ` +
      `room, and ${show.count(counted.nodeSilent)} had no answer`,
    misses: (all: number, minute: number) =>
      `${show.count(all)}, ${show.count(minute)} of them in the last minute.`,
    contentMisses: 'Content misses',
    contentMeaning:
      'Viewers for whose title no node that answers has a ready copy. If they grow, copies are ' +
      'missing: make more, or bring back the nodes that have them.',
    healthMisses: 'Health misses',
    healthMeaning:
      'Viewers whom the best node did not accept. If they grow, nodes are full or away: add ' +
      'nodes or disks, or see which do not answer.',
    ofThisDirector: (connections: string) =>
      `Each director counts its own viewers. Open connections of this one: ${connections}.`,
  },

  nodes: {
    heading: 'Nodes',
    filter: 'Filter by name, rack or address',
    columns: {
      name: 'Node',
      rack: 'Rack',
      address: 'Address',
      answers: 'Answers',
      lease: 'Lease',
      disks: 'Disks',
      network: 'Network',
      memory: 'Memory',
      space: 'Space',
      toFill: 'To fill',
    },
    table: 'Nodes; scrolls',
    answers: 'yes',
    away: 'no',
    drained: 'drained',
    open: (name: string, address: string) => `Console of ${name} at ${address}`,
    free: (part: number) => `${show.percent(part)} free`,
    unlimited: 'unlimited',
    exact: (free: string, guaranteed: string) => `${free} of ${guaranteed} free`,
    ofDisks: (exact: string, disks: number) => `${exact}, ${many(disks, 'disk', 'disks')}`,
    shown: (shown: number, total: number) =>
      shown === total
        ? many(total, 'node', 'nodes')
        : `${show.count(shown)} of ${many(total, 'node', 'nodes')}`,
    none: 'No node is registered, so every viewer is refused.',
    noneHint: (cluster: string) =>
      'Start one: tenuto serve STORE --cluster ETCD ' +
      `--cluster-name ${cluster === '' ? 'NAME' : `\u2068${cluster}\u2069`} --node n1 ` +
      '--node-address http://ADDRESS --cluster-secret FILE',
    noMatch: 'No node matches the filter.',
  },

  titles: {
    heading: 'Titles',
    filter: 'Filter titles by name',
    columns: { name: 'Title', ready: 'Ready', filling: 'Filling', rate: 'Rate', size: 'Size' },
    table: 'Titles; scrolls',
    loading: 'Asking for the titles.',
    none: 'The cluster has no titles yet.',
    noneHint: 'Add one on a node: tenuto ingest STORE FILE',
    noneNodes: 'Titles appear when their nodes are registered.',
    few: (titles: number) =>
      `${many(titles, 'title has', 'titles have')} fewer than two ready copies.`,
    fewHint:
      'Without a ready copy nobody can watch a title, and with one alone it depends on one node. ' +
      'Ingest it on another node, or push it into the bucket from which nodes are filled.',
    notInBucket: 'not in bucket',
    missing: (titles: number) =>
      `${many(titles, 'title is', 'titles are')} on nodes and not in the bucket.`,
    missingHint:
      'They stay, because nobody removes what may be the last copy. Push them into the bucket, or ' +
      'remove them on their nodes: tenuto rm STORE TITLE',
    outdatedCopies: (names: readonly string[]) => `old content: ${listOf(names)}`,
    outdated: (titles: number) =>
      `${many(titles, 'title was', 'titles were')} replaced in the bucket, and nodes still have the old content.`,
    outdatedHint:
      'It is served until the new one is written. Where that does not end, the /status of the node ' +
      'says why: no room for both, or a bucket that fails.',
    ownCopies: (names: readonly string[]) => `other content: ${listOf(names)}`,
    own: (titles: number) =>
      `${many(titles, 'title has', 'titles have')} another content on nodes than in the bucket.`,
    ownHint:
      'It stays, because the bucket never had it under this name. To get what the bucket has, remove ' +
      'it on these nodes: tenuto rm STORE TITLE',
    copies: (copies: number) =>
      copies === 0 ? 'no ready copy' : many(copies, 'copy', 'copies'),
    nodes: (names: readonly string[]) => (names.length === 0 ? '' : listOf(names)),
    copiesOn: (names: readonly string[]) => `${show.count(names.length)}: ${listOf(names)}`,
  },

  about: {
    heading: 'This director',
    version: 'Version',
    planner: 'Placement',
    plannedBy: (address: string) => `planned by ${address}`,
    planned: 'by hand: no director has a bucket (director --bucket)',
    plannedByNobody: 'by nobody at present',
    cluster: 'Cluster',
    uptime: 'Up',
    endpoint: 'Member of etcd that is asked',
    age: 'Last answer of etcd',
    never: 'none yet',
    ago: (seconds: number) => `${show.span(seconds)} ago`,
    revision: 'Revision of the records',
    lists: 'Lists of all records',
    unusable: 'Records that cannot be used',
  },
};
