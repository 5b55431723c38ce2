import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { type Clock, systemClock } from '../clock.ts'
import { EXIT_STATUS, type ExitStatus } from '../errors.ts'
import type { Sqlite } from '../store/open.ts'
import { type CommandContext, mayColour } from './command.ts'
import {
  type DemoPaper,
  type DemoState,
  demoSummary,
  drawDemo,
  eventLine,
  requestLine,
  statusLines,
} from './demo-picture.ts'
import {
  ended,
  type Limit,
  listening,
  type Service,
  type Sizes,
  startParley,
  startSimulator,
} from './demo-processes.ts'
import { createDemoWorld, type DemoWorld } from './demo-world.ts'
import { recentRate, type Sample, withSample } from './forecast.ts'
import { createLiveArea, isLive, type LiveArea } from './live-area.ts'
import { wholeNumber } from './wording.ts'

/** A workspace that changes all the time, and the real daemon that keeps a file true to it. */

export interface DaemonDemo {
  /** The file, and how the person named it. */
  file: string
  database: string
  sizes: Sizes
  /** With hostile names and values. */
  isWild: boolean
  /** Undefined: until it is stopped. */
  minutes: number | undefined
  /** How `parley` is called here. */
  parley: string
}

/** So low that new things have to get past a history that takes minutes. */
const LIMIT: Limit = { rate: 60, burst: 30 }
/** What takes a day takes a minute and a half. */
const INTERVAL_SCALE = '0.001'
const POLL_SECONDS = '5'
/** The older a thing is, the longer it takes until it is looked for again; of these, minutes. */
const HISTORY_DAYS = '60'

export async function demoDaemon(context: CommandContext, demo: DaemonDemo): Promise<ExitStatus> {
  const { env, cwd, stderr, signal } = context
  stderr.write(beforehand(demo))
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
    const service = await listening(simulator, signal)
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
    await ended(simulator)
  }
}

function beforehand({ sizes: { messages, meetings, deals }, database, parley }: DaemonDemo): string {
  return `
parley simulate now serves a made-up workspace on this machine that changes all the time:
${wholeNumber(messages)} e-mails, ${wholeNumber(meetings)} meetings and ${wholeNumber(deals)} deals to begin with. It refuses more than
${LIMIT.rate} requests a second, and fails now and then.

parley daemon keeps ${database} true to it: it looks for new things every ${POLL_SECONDS} s and loads the history
beside that. Intervals of audits are a thousandth of the usual, so that what takes days takes minutes.

In a second terminal:
  ${parley} status --database ${database}
  sqlite3 -box ${database} "SELECT * FROM live_messages ORDER BY received_at DESC LIMIT 5"
  sqlite3 -box ${database} "SELECT * FROM crm_record_changes ORDER BY observed_at DESC LIMIT 5"

`
}

interface Watch {
  demo: DaemonDemo
  daemon: ChildProcess
  service: Service
  clock: Clock
}

async function watch(context: CommandContext, { demo, daemon, service, clock }: Watch): Promise<ExitStatus> {
  const { stdout, stderr, env, signal } = context
  const over = new AbortController()
  const exit = once(daemon, 'exit').then(([status]) => {
    over.abort()
    return status as ExitStatus | null
  })
  const time = new AbortController()
  if (demo.minutes !== undefined) {
    void clock.sleep(demo.minutes * 60_000, over.signal).then(() => time.abort())
  }
  const area = isLive(stderr, env) ? createLiveArea(stderr) : undefined
  const say = (line: string) => (area ?? stderr).write(`${line}\n`)
  tellWarnings(daemon, say)
  const { openDatabase } = await import('../store/open.ts')
  const db = openDatabase({ path: demo.file, readonly: true })
  const world = createDemoWorld({ url: service.url, db, clock, random: Math.random, limit: LIMIT })
  const parts: Shown = { demo, db, world, clock, area, colour: mayColour(stderr, env), say }
  try {
    await show(parts, AbortSignal.any([signal, time.signal, over.signal]))
  } finally {
    db.close()
    await ended(daemon)
  }
  const status = await exit
  stdout.write(`${['', ...demoSummary(world.events()), '', ...farewell(demo, status)].join('\n')}\n`)
  return status ?? (signal.aborted ? EXIT_STATUS.unfinished : EXIT_STATUS.fault)
}

function farewell({ database, parley }: DaemonDemo, status: ExitStatus | null): string[] {
  if (status !== EXIT_STATUS.done) return [`parley daemon ended with status ${status ?? 'none'}.`]
  return [
    `parley daemon has ended in order, and nothing of the demo is running any more. ${database} stays:`,
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

/** Of the daemon's log: where its status server listens, and what it warns of. */
function tellWarnings({ stderr }: ChildProcess, say: (line: string) => void): void {
  if (!stderr) return
  createInterface({ input: stderr }).on('line', line => {
    const { level, msg, address, resource, field, reason } = readLogLine(line)
    if (address !== undefined && level === 'info') say(`parley daemon: ${msg} at http://${address}/status`)
    else if (level !== 'info') {
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

interface Shown {
  demo: DaemonDemo
  db: Sqlite
  world: DemoWorld
  clock: Clock
  area: LiveArea | undefined
  colour: boolean
  say(line: string): void
}

const LOOK_MS = 100
/** Between two pictures; off a terminal the state is said as lines, less often. */
const PICTURE_MS = 1000
const LINES_MS = 30_000

async function show(shown: Shown, until: AbortSignal): Promise<void> {
  const { world, clock, area } = shown
  const measure = createMeasure(shown)
  const tell = area === undefined ? createTeller(shown) : undefined
  const began = clock.elapsed()
  let next = began
  while (!until.aborted) {
    await world.move()
    world.look()
    tell?.()
    if (clock.elapsed() >= next) {
      const state = await measure()
      if (area) area.draw(drawDemo(state, paper(shown, area)))
      else for (const line of [...statusLines(state), requestLine(state)]) shown.say(line)
      next += area ? PICTURE_MS : LINES_MS
    }
    await clock.sleep(LOOK_MS, until)
  }
  area?.draw(drawDemo({ ...(await measure()), stopping: true }, paper(shown, area)))
}

const paper = ({ colour }: Shown, area: LiveArea): DemoPaper => ({ ...area.size(), colour })

function createMeasure({ demo, db, world, clock }: Shown): () => Promise<DemoState> {
  const began = clock.elapsed()
  let samples: readonly Sample[] = []
  return async () => {
    const { readStatusReport } = await import('../store/status-report.ts')
    const { total, throttled } = await world.requests()
    samples = withSample(samples, { at: clock.elapsed(), answered: total - throttled })
    const now = clock.now()
    return {
      resources: readStatusReport({ path: demo.file, now, db }).resources,
      events: world.events(),
      requests: { total, throttled, perSecond: recentRate(samples) },
      now,
      elapsedMs: clock.elapsed() - began,
      stopping: false,
    }
  }
}

/** Says each event once, when it has come through. */
function createTeller({ world, clock, say }: Shown): () => void {
  const told = new Set<unknown>()
  return () => {
    for (const event of world.events()) {
      if (told.has(event) || (event.kind !== undefined && event.lagMs === undefined)) continue
      told.add(event)
      say(eventLine(event, clock.now()))
    }
  }
}
