// The program under test: its commands, and servers of it.

import { type ChildProcess, type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

const TENUTO =
  process.env['TENUTO'] ?? fileURLToPath(new URL('../../target/debug/tenuto', import.meta.url));

/** The output of a command of the program, which succeeds. */
export function tenuto(folder: string, ...args: string[]): string {
  return execFileSync(TENUTO, args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
}

/** Starts a command of the program that runs on. */
export function spawnTenuto(folder: string, ...args: string[]): ChildProcessByStdio<null, Readable, Readable> {
  return spawn(TENUTO, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** The port at which a command listens, which prints it as JSON. */
export async function portOf(child: ChildProcessByStdio<null, Readable, Readable>): Promise<number> {
  let notes = '';
  child.stderr.on('data', (piece) => (notes += String(piece)));
  let printed = '';
  for await (const piece of child.stdout) {
    printed += String(piece);
    const [, port] = /"address":\s*"[^"]*:(\d+)"/.exec(printed) ?? [];
    if (port === undefined) continue;
    child.stdout.resume();
    return Number(port);
  }
  throw new Error(`the program did not start: ${printed}${notes}`);
}

/** Ends a program at once, as a power cut does. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

export class Server {
  private child: ChildProcessByStdio<null, Readable, Readable> | null = null;

  /** A server of `a.store` in a folder. */
  constructor(
    readonly folder: string,
    private readonly options: readonly string[],
    /** The operator's token; empty where the server has no tokens. */
    readonly token: string,
    private port = 0,
  ) {}

  get origin(): string {
    const scheme = this.options.includes('--tls-certificate') ? 'https' : 'http';
    return `${scheme}://127.0.0.1:${this.port}`;
  }

  /** Starts it, again at the address that it had, and waits until it serves. */
  async start(): Promise<void> {
    const listen = ['--listen', `127.0.0.1:${this.port}`];
    const args = ['serve', 'a.store', ...listen, '--json', ...this.options];
    this.child = spawnTenuto(this.folder, ...args);
    this.port = await portOf(this.child);
  }

  /** Runs a command on the store that is served. */
  command(name: string, ...args: string[]): void {
    tenuto(this.folder, name, 'a.store', ...args);
  }

  /** Records a test picture as a title until what is returned is called. */
  record(title: string): () => void {
    const pipe = join(this.folder, 'input');
    execFileSync('mkfifo', [pipe]);
    const picture = ['-re', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=25'];
    const codec = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '25', '-pix_fmt', 'yuv420p'];
    const output = ['-f', 'mpegts', '-y', pipe];
    const args = ['-nostdin', '-v', 'error', ...picture, ...codec, ...output];
    const input = spawn('ffmpeg', args, { stdio: 'ignore' });
    const recorder = spawn(TENUTO, ['record', 'a.store', title, pipe], {
      cwd: this.folder,
      stdio: 'ignore',
    });
    return () => {
      input.kill('SIGKILL');
      recorder.kill('SIGKILL');
    };
  }

  /** Ends it at once, as a power cut does. */
  async kill(): Promise<void> {
    const child = this.child;
    this.child = null;
    if (child) await end(child);
  }

  /** The address of a page of the console. */
  page(hash: string): string {
    return `${this.origin}/console/${this.query()}${hash}`;
  }

  /** A response of the server, as an operator gets it. */
  async get(path: string): Promise<Response> {
    return fetch(`${this.origin}${path}${this.query(path)}`);
  }

  /** A change, as an operator asks for it. */
  async post(path: string): Promise<Response> {
    return fetch(`${this.origin}${path}${this.query(path)}`, { method: 'POST' });
  }

  async json<T>(path: string): Promise<T> {
    return (await (await this.get(path)).json()) as T;
  }

  /**
   * A viewer who asks for a title, and gets its master playlist or a refusal: the status. Each has
   * a connection of its own, because the viewers of a connection that ends are taken to be gone.
   */
  async view(title: string): Promise<number> {
    const path = `/t/${encodeURIComponent(title)}/master.m3u8?wait=0`;
    const asked = get(`${this.origin}${path}${this.query(path)}`, { agent: false });
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.resume();
    await once(response, 'end');
    return response.statusCode ?? 0;
  }

  /** A viewer who fetches all segments of a title at once: how many. */
  async watch(title: string): Promise<number> {
    const master = `${this.origin}/t/${encodeURIComponent(title)}/master.m3u8${this.query()}`;
    const lines = async (url: string) => (await (await fetch(url)).text()).split('\n');
    const all = (await lines(master)).join('\n');
    const [picture] = /^[^#\n].*$/m.exec(all) ?? [''];
    const [, sound = ''] = /TYPE=AUDIO.*URI="([^"]+)"/.exec(all) ?? [];
    let fetched = 0;
    for (const list of [picture, sound]) {
      const url = new URL(list, master);
      for (const segment of (await lines(url.href)).filter((line) => line && !line.startsWith('#'))) {
        const response = await fetch(new URL(segment, url));
        await response.arrayBuffer();
        fetched += Number(response.ok);
      }
    }
    return fetched;
  }

  /** Sessions that were admitted and have not ended. */
  async sessions(): Promise<number> {
    return (await this.json<{ sessions: number }>('/status')).sessions;
  }

  /** Identity of the store that is served. */
  async disk(): Promise<string> {
    const { disks } = await this.json<{ disks: { uuid: string }[] }>('/api/v1/disks');
    const uuid = disks[0]?.uuid;
    if (uuid === undefined) throw new Error('the server has no disk');
    return uuid;
  }

  private query(path = ''): string {
    if (this.token === '') return '';
    return `${path.includes('?') ? '&' : '?'}token=${encodeURIComponent(this.token)}`;
  }
}
