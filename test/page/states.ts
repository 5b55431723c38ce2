import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import type { Simulator, SimulatorOptions } from '../../src/simulator/server.ts'
import { type Place, placeFor, type Test, workspace } from '../cli/workspace.ts'
import { type DaemonProcess, loaded, seen, startDaemon } from '../daemon/cli-daemon.ts'

/** The states that an operator may find the page in, each reached by a real daemon. */
export interface PageState {
  /** Also the name of its pictures. */
  name: string
  sizes?: SimulatorOptions
  env?: Readonly<Record<string, string>>
  /** Brings a daemon that has just started into the state. */
  bring(parts: Parts): Promise<unknown>
  /** The verdict. */
  verdict: RegExp
  /** What the page says that a person should do. */
  todo: RegExp | undefined
}

export interface Parts {
  simulator: Simulator
  place: Place
  daemon: DaemonProcess
}

/** Large enough for a deletion that the mass-deletion guard holds back. */
const SIXTY = { messages: 60 }

/** The file size limit of the process stands for a full disk: SQLite gets the same kind of error for a write. */
function fillDisk({ place, daemon }: Parts): void {
  execFileSync('prlimit', ['--pid', String(daemon.pid), `--fsize=${statSync(`${place.file}-wal`).size}:`])
}

const publish = ({ simulator }: Parts) =>
  simulator.apply({ kind: 'publish', resource: 'messages', count: 20 })

const readAll = ({ place }: Parts) => loaded(place.file)

export const PAGE_STATES: readonly PageState[] = [
  {
    name: 'first-start',
    sizes: { latencyMs: 3000 },
    bring: async () => undefined,
    verdict: /^Loading history/,
    todo: undefined,
  },
  {
    name: 'history-loading',
    sizes: {
      messages: 3000,
      meetings: 300,
      deals: 100,
      limit: { kind: 'token-bucket', rate: 40, burst: 40 },
    },
    bring: ({ place }) =>
      seen(place.file, 1, 'SELECT count(*) > 100 FROM live_messages WHERE text IS NOT NULL'),
    verdict: /^Loading history/,
    todo: undefined,
  },
  {
    name: 'up-to-date',
    sizes: { messages: 1500, meetings: 120, deals: 60 },
    bring: readAll,
    verdict: /^Up to date: everything published before/,
    todo: undefined,
  },
  {
    name: 'api-away',
    bring: async parts => {
      await readAll(parts)
      parts.simulator.setFaults([{ kind: 'status', status: 503 }])
    },
    verdict: /^Waiting since .*: No request to the API succeeds/,
    todo: /Nothing to do yet. It needs you if it lasts until/,
  },
  {
    name: 'key-refused',
    bring: async parts => {
      await readAll(parts)
      parts.simulator.setApiKey('another-key')
    },
    verdict: /^Needs you since .*: The API refuses the key/,
    todo: /Set PARLEY_API_KEY to the new key/,
  },
  {
    name: 'disk-full',
    bring: async parts => {
      await readAll(parts)
      fillDisk(parts)
      publish(parts)
      await parts.daemon.says(({ msg }) => msg === 'The daemon waits and tries again')
    },
    verdict: /^Needs you since .*: The daemon cannot use the database/,
    todo: /Check the disk, its free space/,
  },
  {
    name: 'deletion-held-back',
    sizes: SIXTY,
    env: { PARLEY_SYNC_INTERVAL_SCALE: '0.01' },
    bring: async parts => {
      await readAll(parts)
      parts.simulator.apply({ kind: 'hide', resource: 'messages', count: 40 })
      const held = "SELECT held_since IS NOT NULL FROM sync_resources WHERE resource = 'messages'"
      await seen(parts.place.file, 1, held)
    },
    verdict: /^Needs you since .*: An unusual number of \w+ is missing at the API/,
    todo: /parley accept-deletions \w+/,
  },
  {
    name: 'paused-by-retry-after',
    bring: async parts => {
      await readAll(parts)
      parts.simulator.setFaults([{ kind: 'status', status: 429, retryAfter: 3600 }])
    },
    verdict: /^Waiting since .*: The API asked parley to wait/,
    todo: /ends by itself.*Next try: /,
  },
]

/** A daemon in this state, and the address of its page. */
export async function inState(
  test: Test,
  { sizes, env, bring }: PageState,
): Promise<Parts & { url: string }> {
  const simulator = await workspace(test, { ...SETTLED, ...sizes })
  const place = placeFor(simulator)
  const daemon = startDaemon(test, place, { PARLEY_LOG_LEVEL: 'info', ...env })
  const { address } = await daemon.says(({ msg }) => msg === 'The status server listens')
  const parts = { simulator, place, daemon }
  await bring(parts)
  return { ...parts, url: `http://${address}/` }
}

/** Names without hostile characters, and a history that ends now. */
const SETTLED = { tidy: true, now: 'real' as const, historyDays: 700 }
