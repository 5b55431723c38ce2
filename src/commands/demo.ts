import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { basename, relative, resolve } from 'node:path'
import { Option } from 'commander'
import { systemClock } from '../clock.ts'
import { EXIT_STATUS, type ExitStatus, StopError } from '../errors.ts'
import { onOneLine } from '../harmless.ts'
import type { Sqlite } from '../store/open.ts'
import { type CommandContext, type CommandDefinition, mayColour } from './command.ts'
import { makeRoom } from './demo-file.ts'
import {
  CLI,
  ended,
  type Limit,
  listening,
  type Service,
  type Sizes,
  sizesFor,
  startParley,
  startSimulator,
} from './demo-processes.ts'
import { type DemoQuestion, demoQuestions } from './demo-questions.ts'
import { passDays } from './demo-year.ts'
import { table } from './table.ts'
import { wholeNumber } from './wording.ts'

export interface DemoOptions {
  database: string
  messages?: string
  daemon?: boolean
  wild?: boolean
  minutes?: string
}

/** Requests a second that the simulator allows, and at once. */
const LIMIT: Limit = { rate: 400, burst: 100 }

/** A deletion is confirmed after two minutes; in the demo after three seconds. */
const INTERVAL_SCALE = '0.025'

export const demoCommand: CommandDefinition<DemoOptions> = {
  description:
    'Serves a made-up workspace, reads it into a SQLite file with the real parley backfill, lets weeks go by in the workspace and reads it again, so that there is history, and asks that file a few questions; or, with --daemon, has the workspace change all the time and shows how parley daemon keeps the file true to it. Nothing outside this machine is reached, no settings are needed or used, and only a file that an earlier demo made is written over.',
  settings: [],
  options: [
    new Option('--database <file>', 'the file that is left behind').default('demo.db'),
    new Option(
      '--messages <count>',
      'e-mails of the workspace when it is first read; all else goes with them (default 2000; 4000 with --wild and --daemon)',
    ),
    new Option('--wild', 'a workspace with hostile names and values, such as names that look like SQL'),
    new Option('--daemon', 'show the daemon on a workspace that changes, until it is stopped'),
    new Option('--minutes <count>', 'with --daemon: end by itself after so long'),
  ],
  examples: [
    ['parley demo', 'half a minute; leaves demo.db behind'],
    ['parley demo --wild', 'a workspace with hostile names and values, read once'],
    ['parley demo --messages 100000 --database large.db', 'a larger workspace, in a few minutes'],
    ['parley demo --daemon --minutes 10', 'ten minutes of a workspace that changes all the time'],
  ],
  async run(context, { options }) {
    const { stdout, stderr, env, cwd, signal } = context
    const sizes = sizesFor(options.messages ?? (options.wild || options.daemon ? '4000' : '2000'))
    const minutes = minutesFor(options)
    const file = resolve(cwd, options.database)
    await makeRoom(file)
    if (options.daemon) {
      const { demoDaemon } = await import('./demo-daemon.ts')
      return demoDaemon(context, {
        file,
        database: options.database,
        sizes,
        isWild: options.wild === true,
        minutes,
        parley: callOf(cwd),
      })
    }
    const isWild = options.wild === true
    stderr.write(beforehand(sizes, options.database, isWild))
    const simulator = startSimulator(env, sizes, LIMIT, isWild ? ['--now', 'real'] : yearFlags())
    const stop = () => simulator.kill()
    signal.addEventListener('abort', stop)
    try {
      const service = await listening(simulator, signal)
      const status = await readAll(context, { file, service, sizes, readings: isWild ? [AT_ONCE] : READINGS })
      if (signal.aborted || status !== EXIT_STATUS.done) return notFinished(context, status)
      await answerQuestions(context, file, options.database)
      stdout.write(howToGoOn(cwd, options.database))
      return EXIT_STATUS.done
    } finally {
      signal.removeEventListener('abort', stop)
      await ended(simulator)
    }
  },
}

/** @throws StopError (64) */
function minutesFor({ minutes, daemon }: DemoOptions): number | undefined {
  if (minutes === undefined) return undefined
  const isTime = Number(minutes) > 0 && Number(minutes) <= LONGEST_MINUTES
  if (daemon && isTime) return Number(minutes)
  throw new StopError(
    daemon
      ? `--minutes: expected a number above 0 and up to ${LONGEST_MINUTES}, not ${minutes}`
      : '--minutes: only --daemon goes on for a time of your choice',
    { code: 'demo-minutes', exitStatus: EXIT_STATUS.usage },
  )
}

const LONGEST_MINUTES = 1440

/** Days that go by in the workspace before it is read, and what is said then. */
interface Reading {
  days: number
  says: string
}

const AT_ONCE: Reading = { days: 0, says: '' }

const READINGS: readonly Reading[] = [
  AT_ONCE,
  {
    days: 75,
    says: `Ten weeks go by in the workspace, until today: deals move on, things are said, written and withdrawn.
parley backfill reads again. It asks a second time before it marks a row as deleted: here after three
seconds, in your workspace after two minutes.`,
  },
]

const DAY_MS = 86_400_000
/** With the days that go by it is a year. */
const HISTORY_DAYS = 290

/** The workspace begins in the past and comes to the present in the course of the demo. */
function yearFlags(): string[] {
  const days = READINGS.reduce((sum, reading) => sum + reading.days, 0)
  const begins = new Date(systemClock().now() - days * DAY_MS).toISOString()
  return ['--tidy', '--control', '--log-requests', '--now', begins, '--history-days', String(HISTORY_DAYS)]
}

interface Reads {
  file: string
  service: Service | undefined
  sizes: Sizes
  readings: readonly Reading[]
}

/** One backfill after the other, until one does not get to its end. */
async function readAll(
  context: CommandContext,
  { file, service, sizes, readings }: Reads,
): Promise<ExitStatus> {
  for (const { days, says } of readings) {
    if (days > 0 && service) {
      await passDays({ service, days, messages: sizes.messages })
      context.stderr.write(`\n${says}\n\n`)
    }
    const status = await backfill(context, { file, service })
    if (status !== EXIT_STATUS.done) return status
  }
  return EXIT_STATUS.done
}

function beforehand({ messages, meetings, deals }: Sizes, database: string, isWild: boolean): string {
  return `
parley simulate now serves a made-up workspace on this machine: ${wholeNumber(messages)} e-mails, ${wholeNumber(meetings)} meetings
and ${wholeNumber(deals)} deals ${isWild ? 'over two years' : 'to begin with'}. It refuses more than ${LIMIT.rate} requests a second; parley does not
know that and has to find it out.

parley backfill reads all of it into ${database}:

`
}

async function backfill(
  { cwd, env, signal }: CommandContext,
  { file, service }: { file: string; service: Service | undefined },
): Promise<ExitStatus> {
  if (service === undefined || signal.aborted) return EXIT_STATUS.unfinished
  const start = { cwd, env, service, file, stderr: 'inherit' } as const
  const child = startParley(['backfill', '--interval-scale', INTERVAL_SCALE, '--log-level', 'error'], start)
  const stop = () => child.kill()
  signal.addEventListener('abort', stop)
  const [status] = (await once(child, 'exit')) as [ExitStatus | null]
  signal.removeEventListener('abort', stop)
  return status ?? EXIT_STATUS.unfinished
}

function notFinished({ stderr, signal }: CommandContext, status: ExitStatus): ExitStatus {
  stderr.write(
    signal.aborted
      ? '\nThe demo was stopped, and nothing of it is running any more. Started again it begins anew.\n'
      : '\nThe demo ended early: the backfill did not get to its end.\n',
  )
  return signal.aborted ? EXIT_STATUS.unfinished : status
}

/** How `parley` is called by whoever has called this. */
function callOf(cwd: string): string {
  return basename(process.argv[1] ?? '') === 'parley' ? 'parley' : `node ${relative(cwd, CLI)}`
}

// ------------------------------------------------------------------------------------------------ the answers

async function answerQuestions(
  { stdout, env, cwd }: CommandContext,
  path: string,
  database: string,
): Promise<void> {
  const { openDatabase } = await import('../store/open.ts')
  const db = openDatabase({ path, readonly: true })
  const [bold, dim] = mayColour(stdout, env) ? [styled(1, 22), styled(2, 22)] : [plain, plain]
  for (const { question, file, sql } of demoQuestions()) {
    const command = `sqlite3 -readonly -box ${database} < ${relative(cwd, file)}`
    stdout.write(`\n${bold(question)}\n\n${dim(command)}\n\n${answerOf(db, sql).join('\n')}\n`)
  }
  db.close()
}

/** The first rows, without what is of use to programs only. */
function answerOf(db: Sqlite, sql: DemoQuestion['sql']): string[] {
  const statement = db.prepare(sql).raw()
  const columns = statement.columns().map(({ name }, index) => ({ name, index }))
  const all = statement.all() as unknown[][]
  const rows = all.slice(0, MOST_ROWS).map(row => row.map(cellOf))
  const lines = table(
    columns.map(({ name, index }) => ({
      title: name,
      align: rows.every(row => COUNT.test(row[index] ?? '')) ? ('right' as const) : ('left' as const),
      cell: (row: string[]) => row[index] ?? '',
      isIdle: () => MACHINE_READ.test(name),
    })),
    rows,
  )
  const more = all.length - rows.length
  return more > 0 ? [...lines, `and ${wholeNumber(more)} more`] : lines
}

const MOST_ROWS = 8
const MOST_SIGNS = 40
const MACHINE_READ = /^url$|_id$/
const COUNT = /^[\d,.]*$/

function cellOf(value: unknown): string {
  if (typeof value === 'number') return value.toLocaleString('en', { maximumFractionDigits: 1 })
  const signs = [...onOneLine(String(value ?? ''))]
  return signs.length > MOST_SIGNS ? `${signs.slice(0, MOST_SIGNS - 1).join('')}…` : signs.join('')
}

const plain = (text: string) => text
const styled = (on: number, off: number) => (text: string) => `\u001b[${on}m${text}\u001b[${off}m`

function howToGoOn(cwd: string, database: string): string {
  const parley = callOf(cwd)
  const withoutShell = existsSync(resolve(cwd, 'node_modules/better-sqlite3'))
    ? `or without sqlite3:
  node -e "console.table(require('better-sqlite3')('${database}', { readonly: true }).prepare('SELECT * FROM live_members').all())"
`
    : ''
  return `
All of this came from one SQLite file, ${database}. Look around in it:
  sqlite3 -readonly -box ${database} "SELECT * FROM live_members"
  sqlite3 -readonly -box ${database} "SELECT * FROM sync_status"
  ${parley} status --database ${database}
${withoutShell}drizzle/README.md explains every table and view.

For your own workspace:
  ${parley} init            asks for the API key and writes a settings file
  ${parley} backfill        reads everything; the same again brings all up to date
`
}
