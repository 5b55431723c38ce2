import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { type Clock, MINUTE_MS, systemClock } from '../../base/clock.ts'
import { EXIT_STATUS, type ExitStatus } from '../../base/errors.ts'
import { wholeNumber } from '../../base/whole-number.ts'
import { hasColours } from '../../terminal/colours.ts'
import { createLiveArea, isRedrawable, type LiveArea } from '../../terminal/live-area.ts'
import type { CommandContext } from '../base/command.ts'
import { createDemoWorld, type DemoWorld } from './change-driver.ts'
import { currentLine, demoSummary, eventLine } from './display.ts'
import {
  type DemoSizes,
  endProcess,
  type Limit,
  type SimulatorAddress,
  startParley,
  startSimulator,
  waitForService,
} from './processes.ts'

/** `parley demo --daemon`: a workspace that keeps changing, and the real daemon that follows it. */

export interface DaemonDemo {
  /** The absolute path of the database. */
  file: string
  /** The path as the user gave it. */
  database: string
  sizes: DemoSizes
  /** With hostile names and values. */
  isWild: boolean
  /** Undefined: runs until it is stopped. */
  minutes: number | undefined
  /** The command that starts parley here, such as `node dist/cli.js`. */
  parley: string
}

/** Low, so that loading the history takes minutes. Meanwhile the demo shows that new items still arrive quickly. */
const LIMIT: Limit = { rate: 60, burst: 30 }
/** A day becomes four minutes. With less, the reads that fall due would not fit below the limit. */
const INTERVAL_SCALE = '0.003'
const POLL_SECONDS = '5'
/** Short, since the audit interval grows with age: changes to items of this age arrive within minutes. */
const HISTORY_DAYS = '60'

export async function demoDaemon(context: CommandContext, demo: DaemonDemo): Promise<ExitStatus> {
  const { env, cwd, stderr, signal } = context
  stderr.write(introduction(demo))
  const clock = systemClock()
  const simulator = startSimulator(env, demo.sizes, LIMIT, [
    '--control',
    '--now',
    'real',
    ...(demo.isWild ? [] : ['--tidy']),
    '--log-requests',
    '--history-days',
    HISTORY_DAYS,
  ])
  const stop = () => simulator.kill()
  signal.addEventListener('abort', stop)
  try {
    const service = await waitForService(simulator, signal)
    signal.removeEventListener('abort', stop)
    if (service === undefined || signal.aborted) return EXIT_STATUS.unfinished
    const flags = ['--poll-seconds', POLL_SECONDS, '--interval-scale', INTERVAL_SCALE]
    const daemon = startParley(['daemon', ...flags, '--listen', '127.0.0.1:0'], {
      cwd,
      env,
      service,
      file: demo.file,
      stderr: 'pipe',
    })
    return await watch(context, { demo, daemon, service, clock })
  } finally {
    signal.removeEventListener('abort', stop)
    await endProcess(simulator)
  }
}

function introduction({ sizes: { messages, meetings, deals }, database, parley }: DaemonDemo): string {
  return `
parley simulate now serves a made-up workspace on this machine that changes all the time:
${wholeNumber(messages)} e-mails, ${wholeNumber(meetings)} meetings and ${wholeNumber(deals)} deals to begin with. It refuses more than
${LIMIT.rate} requests per second, and fails now and then.

parley daemon keeps ${database} up to date: it reads new items every ${POLL_SECONDS} s and meanwhile loads the history.
Audit intervals are shortened: a day becomes four minutes.

In a second terminal:
  ${parley} status --database ${database}
  sqlite3 -box ${database} "SELECT * FROM live_messages ORDER BY received_at DESC LIMIT 5"
  sqlite3 -box ${database} "SELECT * FROM crm_record_changes ORDER BY observed_at DESC LIMIT 5"

Ctrl-C stops the demo.

`
}

interface WatchedDaemon {
  demo: DaemonDemo
  daemon: ChildProcess
  service: SimulatorAddress
  clock: Clock
}

async function watch(
  context: CommandContext,
  { demo, daemon, service, clock }: WatchedDaemon,
): Promise<ExitStatus> {
  const { stdout, stderr, env, signal } = context
  const over = new AbortController()
  const exit = once(daemon, 'exit').then(([status]) => {
    over.abort()
    return status as ExitStatus | null
  })
  const time = new AbortController()
  if (demo.minutes !== undefined) {
    void clock.sleep(demo.minutes * MINUTE_MS, over.signal).then(() => time.abort())
  }
  const area = isRedrawable(stderr, env) ? createLiveArea(stderr) : undefined
  const say = (line: string) => (area ?? stderr).write(`${line}\n`)
  showDaemonLog(daemon, say)
  const { openDatabase } = await import('../../store/file/open.ts')
  const db = openDatabase({ path: demo.file, readonly: true })
  const world = createDemoWorld({ url: service.url, db, clock, random: Math.random, limit: LIMIT })
  const colour = hasColours(stderr, env)
  try {
    await show({ world, clock, area, colour, say }, AbortSignal.any([signal, time.signal, over.signal]))
  } finally {
    db.close()
    await endProcess(daemon)
  }
  const status = await exit
  stdout.write(`${['', ...demoSummary(world.events()), '', ...endLines(demo, status)].join('\n')}\n`)
  return status ?? (signal.aborted ? EXIT_STATUS.unfinished : EXIT_STATUS.fault)
}

function endLines({ database, parley }: DaemonDemo, status: ExitStatus | null): string[] {
  if (status !== EXIT_STATUS.done) return [`parley daemon ended with status ${status ?? 'none'}.`]
  return [
    `parley daemon has stopped, and all processes of the demo have ended. ${database} is kept:`,
    `  ${parley} status --database ${database}`,
  ]
}

interface LogLine {
  level: string
  msg: string
  address?: string
  resource?: string
  field?: string
  reason?: string
}

/** Prints two kinds of lines of the daemon's log: the address of its page, and warnings and errors. */
function showDaemonLog({ stderr }: ChildProcess, say: (line: string) => void): void {
  if (!stderr) return
  createInterface({ input: stderr }).on('line', line => {
    const { level, msg, address, resource, field, reason } = readLogLine(line)
    if (msg === 'The status server listens') say(`The page that shows all of it: http://${address}/\n`)
    if (level !== 'info') {
      const where = [resource, field].filter(part => part !== undefined).join('.')
      say(`parley daemon: ${[where, msg, reason].filter(part => part).join(': ')}`)
    }
  })
}

function readLogLine(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine
  } catch {
    return { level: 'error', msg: line }
  }
}

interface DemoView {
  world: DemoWorld
  clock: Clock
  area: LiveArea | undefined
  colour: boolean
  say(line: string): void
}

const CHECK_MS = 100

/** On a terminal one line says what happens; elsewhere each event is a line. */
async function show({ world, clock, area, colour, say }: DemoView, until: AbortSignal): Promise<void> {
  const printEvents = area === undefined ? createEventPrinter({ world, say }) : undefined
  while (!until.aborted) {
    await world.makeDueChanges()
    world.checkArrivals()
    printEvents?.()
    area?.draw([currentLine(world.events(), { columns: area.size().columns, colour })])
    await clock.sleep(CHECK_MS, until)
  }
  area?.draw(['Stopping after the requests in flight'])
}

/** Prints each event once: an API problem immediately, a change when it has arrived in the warehouse. */
function createEventPrinter({ world, say }: Pick<DemoView, 'world' | 'say'>): () => void {
  const printed = new Set<unknown>()
  return () => {
    for (const event of world.events()) {
      if (printed.has(event) || (event.kind !== undefined && event.lagMs === undefined)) continue
      printed.add(event)
      say(eventLine(event))
    }
  }
}
