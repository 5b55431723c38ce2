import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type DaemonProcess, startDaemon } from './daemon-process.ts'
import { isAtRest } from './due-reads.ts'
import { startWorkspace, type Workspace } from './workspace.ts'

/** Measures what many daemons on one machine cost while nothing changes, and what their common start costs. */

export interface FleetOptions {
  folder: string
  /** The built command line program. */
  program: string
  daemons: number
  minutes: number
  logLevel: string
}

export interface Fleet {
  daemons: number
  start: { readyMs: number; cpuMs: number; requests: Spread }
  idle: { seconds: number; cpuMs: number; requests: Spread }
  /** One of each daemon, at the end. */
  footprints: readonly Footprint[]
  /** `parley status --all`, the fastest of three. */
  statusMs: number
}

/** How requests were spread over time. */
interface Spread {
  total: number
  busiestSecond: number
}

interface Footprint {
  rssKiB: number
  /** Pages that processes share count in equal parts. */
  pssKiB: number
  /** Open files and sockets. */
  files: number
  threads: number
}

/** The daemons wait for nothing but polls after this time. */
const SETTLE_MS = 10_000
const LOOK_MS = 1000

export async function runFleet(options: FleetOptions): Promise<Fleet> {
  const workspace = await startWorkspace({ messages: 500, meetings: 20, deals: 10, now: 'real' })
  const names = Array.from({ length: options.daemons }, (_, index) => `workspace-${index + 1}`)
  let daemons: readonly DaemonProcess[] = []
  try {
    const [first = '', ...others] = names
    await loadIn(workspace, options, first)
    for (const name of others) copyWarehouse(options.folder, first, name)
    await workspace.forgetRequests()
    const began = performance.now()
    const starting = watchRequests(workspace)
    daemons = names.map(name => startIn(workspace, options, name))
    await Promise.all(daemons.map(untilReady))
    const readyMs = performance.now() - began
    await sleep(SETTLE_MS)
    const start = { readyMs, cpuMs: cpuMsOf(daemons), requests: await starting.end() }
    await workspace.forgetRequests()
    const idling = watchRequests(workspace)
    const idleFrom = performance.now()
    const cpuBefore = cpuMsOf(daemons)
    await sleep(options.minutes * 60_000)
    const idle = {
      seconds: (performance.now() - idleFrom) / 1000,
      cpuMs: cpuMsOf(daemons) - cpuBefore,
      requests: await idling.end(),
    }
    const footprints = daemons.map(({ pid }) => footprintOf(pid))
    const statusMs = Math.min(await timeStatus(options), await timeStatus(options), await timeStatus(options))
    return { daemons: daemons.length, start, idle, footprints, statusMs }
  } finally {
    await stopAll(daemons)
    await workspace.close()
  }
}

/** Its settings file lies in the folder, as those of services lie in /etc/parley. */
function startIn(workspace: Workspace, options: FleetOptions, name: string): DaemonProcess {
  const folder = join(options.folder, name)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(options.folder, `${name}.toml`), `[database]\npath = "${folder}/parley.db"\n`)
  return startDaemon(workspace, { ...options, folder })
}

/** One daemon reads everything, so that the others need not. */
async function loadIn(workspace: Workspace, options: FleetOptions, name: string): Promise<void> {
  const daemon = startIn(workspace, options, name)
  try {
    const db = await daemon.openWarehouse()
    while (!isAtRest(db)) await sleep(LOOK_MS)
    db.close()
  } finally {
    await daemon.stop()
  }
}

/** The copies have the same due times, as after an outage of the machine. */
function copyWarehouse(folder: string, from: string, to: string): void {
  mkdirSync(join(folder, to), { recursive: true })
  for (const file of ['parley.db', 'parley.db-wal']) cpSync(join(folder, from, file), join(folder, to, file))
}

async function stopAll(daemons: readonly DaemonProcess[]): Promise<void> {
  await Promise.allSettled(daemons.map(daemon => daemon.stop()))
}

async function untilReady(daemon: DaemonProcess): Promise<void> {
  while ((await daemon.ask('/readyz').catch(() => '')).trim() !== 'ok') await sleep(LOOK_MS / 10)
}

/** Looks every second at how many requests the API has got. */
function watchRequests(workspace: Workspace): { end(): Promise<Spread> } {
  let total = 0
  let busiestSecond = 0
  let lookedAt = performance.now()
  const look = async () => {
    const found = (await workspace.requests()).total
    const at = performance.now()
    // On a busy machine a look may be late, and shows the requests of more than a second.
    busiestSecond = Math.max(busiestSecond, (found - total) / Math.max(1, (at - lookedAt) / 1000))
    total = found
    lookedAt = at
  }
  const ended = new AbortController()
  const looking = (async () => {
    while (!ended.signal.aborted) {
      await look()
      await sleep(LOOK_MS, undefined, { signal: ended.signal }).catch(() => undefined)
    }
  })()
  return {
    async end() {
      ended.abort()
      await looking
      await look()
      return { total, busiestSecond }
    },
  }
}

async function timeStatus({ program, folder }: FleetOptions): Promise<number> {
  const began = performance.now()
  const child = spawn(program, ['status', '--all', folder, '--check'], { stdio: 'ignore' })
  const [status] = await once(child, 'close')
  if (status !== 0) throw new Error(`parley status --all --check ends with ${status}`)
  return performance.now() - began
}

const CLOCK_TICK_MS = 10

/** Processor time since the start of each process. */
function cpuMsOf(daemons: readonly DaemonProcess[]): number {
  const ticks = daemons.map(({ pid }) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return Number(fields[11]) + Number(fields[12])
  })
  return ticks.reduce((sum, each) => sum + each, 0) * CLOCK_TICK_MS
}

function footprintOf(pid: number): Footprint {
  const memory = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const kiB = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(memory)?.[1])
  return {
    rssKiB: kiB('Rss'),
    pssKiB: kiB('Pss'),
    files: readdirSync(`/proc/${pid}/fd`).length,
    threads: readdirSync(`/proc/${pid}/task`).length,
  }
}
