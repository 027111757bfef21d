// A cluster on this machine: etcd, and directors of the program.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { end, portOf, spawnTenuto } from './program';

/** Between two attempts to reach an etcd that starts, and as many as are made. */
const RETRY = { ms: 100, most: 150 };

/** Why there is no etcd for a test; empty if there is one. Fails where one is required. */
export function withoutEtcd(): string {
  try {
    execFileSync('etcd', ['--version'], { stdio: 'ignore' });
    return '';
  } catch {
    const isRequired = (process.env['TENUTO_REQUIRE'] ?? '').split(',').includes('etcd');
    if (isRequired) throw new Error('TENUTO_REQUIRE names etcd, which is not installed');
    return 'needs etcd (Debian: etcd-server)';
  }
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** An etcd of its own, and a director that knows the cluster from it. */
export class Cluster {
  private readonly folder = mkdtempSync(join(tmpdir(), 'tenuto-cluster-'));
  private readonly secret = join(this.folder, 'secret');
  private etcd: ChildProcess | null = null;
  private etcdAddress = '';
  private director: ReturnType<typeof spawnTenuto> | null = null;
  private port = 0;

  constructor() {
    writeFileSync(this.secret, '0123456789abcdef'.repeat(4));
    chmodSync(this.secret, 0o600);
  }

  /** The director's address. */
  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const [clients, peers] = [await freePort(), await freePort()];
    this.etcdAddress = `http://127.0.0.1:${clients}`;
    const peer = `http://127.0.0.1:${peers}`;
    this.etcd = spawn(
      'etcd',
      [
        ['--name', 'e', '--data-dir', join(this.folder, 'etcd')],
        ['--listen-client-urls', this.etcdAddress, '--advertise-client-urls', this.etcdAddress],
        ['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
        ['--initial-cluster', `e=${peer}`],
      ].flat(),
      { stdio: 'ignore' },
    );
    for (let attempt = 0; ; attempt += 1) {
      const response = await fetch(`${this.etcdAddress}/health`).catch(() => null);
      if (response?.ok) break;
      if (attempt === RETRY.most) throw new Error('etcd did not start');
      await new Promise((resolve) => setTimeout(resolve, RETRY.ms));
    }
    await this.startDirector();
  }

  /** Starts the director, again at the address that it had. */
  async startDirector(): Promise<void> {
    const listen = ['--listen', `127.0.0.1:${this.port}`];
    this.director = spawnTenuto(this.folder, 'director', ...listen, '--json', ...this.membership());
    this.port = await portOf(this.director);
  }

  async killDirector(): Promise<void> {
    if (this.director) await end(this.director);
  }

  async killEtcd(): Promise<void> {
    if (this.etcd) await end(this.etcd);
  }

  /** The options of a server that is a node of this cluster. */
  nodeOptions(name: string, port: number): string[] {
    const address = `http://127.0.0.1:${port}`;
    return [...this.membership(), '--node', name, '--node-address', address, '--rack', `rack of ${name}`];
  }

  /** A viewer who asks the director for a title: the status, and where it leads. */
  async view(title: string): Promise<{ status: number; location: string }> {
    const path = `/t/${encodeURIComponent(title)}/master.m3u8`;
    const response = await fetch(this.origin + path, { redirect: 'manual' });
    return { status: response.status, location: response.headers.get('Location') ?? '' };
  }

  async end(): Promise<void> {
    await this.killDirector();
    await this.killEtcd();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private membership(): string[] {
    const etcd = ['--cluster', this.etcdAddress, '--cluster-name', 'c'];
    return [...etcd, '--cluster-secret', this.secret];
  }
}
