import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { devNull } from 'node:os'
import { basename, extname, join, relative, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Option } from 'commander'
import { DAY_MS, isoInstant, systemClock, utcDay } from '../../base/clock.ts'
import { EXIT_STATUS, type ExitStatus, StopError } from '../../base/errors.ts'
import { INSTALLATION } from '../../base/installation.ts'
import { shellWord } from '../../base/safe-text.ts'
import { wholeNumber } from '../../base/whole-number.ts'
import { type Question, questionFile, readQuestions } from '../../dictionary/questions.ts'
import type { Simulator } from '../../simulator/server.ts'
import type { Sqlite } from '../../store/database/sqlite-types.ts'
import { readMeta } from '../../store/sync/meta.ts'
import { hasColours, styledText } from '../../terminal/output.ts'
import { table } from '../../terminal/table.ts'
import { shortText } from '../../terminal/wording.ts'
import type { CommandContext, CommandDefinition } from '../base/command.ts'
import { passDays } from './daily-changes.ts'

interface DemoOptions {
  database: string
  messages?: string
  wild?: boolean
}

/** With this scale, a deletion is confirmed after three seconds instead of two minutes. */
const INTERVAL_SCALE = '0.025'

export const demoCommand: CommandDefinition<DemoOptions> = {
  description:
    'Serves a made-up workspace and reads it into a SQLite file with the real parley backfill. Then ten weeks pass in the workspace and the demo reads it again every two weeks, so that the file has history. At the end it answers five questions of a sales leader with SQL on the file. The demo connects to nothing outside this machine, uses no settings, and replaces only a file that an earlier demo created.',
  settings: [],
  options: [
    new Option('--database <file>', 'the database file, kept after the demo').default('demo.db'),
    new Option(
      '--messages <count>',
      'number of e-mails in the workspace; all other sizes follow from it (default 2000; 4000 with --wild)',
    ),
    new Option('--wild', 'a workspace with hostile names and values, such as names that look like SQL'),
  ],
  examples: [
    ['parley demo', 'takes about a minute and creates demo.db'],
    ['parley demo --wild', 'a workspace with hostile names and values, read once'],
    ['parley demo --messages 100000 --database large.db', 'a larger workspace, in a few minutes'],
  ],
  async run(context, { options }) {
    const { stdout, stderr, cwd, signal } = context
    const sizes = parseSizes(options.messages ?? (options.wild ? '4000' : '2000'))
    const file = resolve(cwd, options.database)
    const isWild = options.wild === true
    await createDemoDatabase(file, isWild ? 0 : DAYS).catch(error => {
      throw withoutSettings(error)
    })
    stderr.write(introduction(sizes, options.database, isWild))
    const { startSimulator } = await import('../../simulator/server.ts')
    const simulator = await startSimulator({
      ...sizes,
      ...(isWild ? { now: 'real' } : pastWorkspace()),
      latencyMs: 15,
      limit: { kind: 'token-bucket', rate: REQUESTS_PER_SECOND, burst: 100 },
    })
    try {
      const status = isWild
        ? await runBackfill(context, { file, simulator, daysAgo: 0 })
        : await runBackfills(context, { file, simulator }, sizes)
      if (signal.aborted || status !== EXIT_STATUS.done) return reportUnfinished(context, status)
      await printAnswers(context, file, options.database)
      stdout.write(nextSteps(context, options.database))
      return EXIT_STATUS.done
    } finally {
      await simulator.close()
    }
  },
}

/** The rate limit of the simulator. */
const REQUESTS_PER_SECOND = 400

interface DemoSizes {
  messages: number
  meetings: number
  deals: number
}

/** @throws StopError (exit status 64) unless the text is a number from 100 to 9999999 */
function parseSizes(text: string): DemoSizes {
  const messages = Number(text)
  if (!/^\d{3,7}$/.test(text)) {
    throw new StopError(`--messages is ${text}: expected a whole number from 100 to 9999999`, {
      code: 'demo-size',
      exitStatus: EXIT_STATUS.usage,
    })
  }
  return { messages, meetings: Math.ceil(messages / 10), deals: Math.ceil(messages / 30) }
}

/** How many days pass in the workspace before each backfill of the demo: ten weeks in all. */
const DAYS_BEFORE_BACKFILLS = [0, 15, 15, 15, 15, 15] as const
const DAYS = DAYS_BEFORE_BACKFILLS.reduce<number>((sum, days) => sum + days, 0)

/** The history before the demo. With the days that pass during the demo, the history covers a year. */
const HISTORY_DAYS = 290

/** The workspace starts in the past and reaches the present during the demo. */
const pastWorkspace = () => ({
  now: isoInstant(systemClock().now() - DAYS * DAY_MS),
  historyDays: HISTORY_DAYS,
  tidy: true,
  realistic: true,
  logRequests: true,
})

interface DemoBackfill {
  file: string
  simulator: Simulator
  /** By how many days the workspace is in the past. */
  daysAgo: number
  /** Reads only what changes from week to week, and shows only the last line of the result. */
  isBrief?: boolean
}

/** With these flags, a deletion is confirmed after half a second. */
const BRIEF_FLAGS = [
  ...['--interval-scale', '0.004'],
  ...['--only', 'members,teams,activities,messages,crm_objects,crm_records'],
] as const

/** Runs one backfill after another while the weeks pass, until a backfill does not complete. */
async function runBackfills(
  context: CommandContext,
  { file, simulator }: Pick<DemoBackfill, 'file' | 'simulator'>,
  { messages }: DemoSizes,
): Promise<ExitStatus> {
  let day = 0
  for (const days of DAYS_BEFORE_BACKFILLS) {
    if (day === 0 && days > 0) context.stderr.write(WEEKS_PASS)
    await passDays({ simulator, from: day, to: day + days, messages, signal: context.signal })
    day += days
    const isBrief = day > 0 && day < DAYS
    const status = await runBackfill(context, { file, simulator, daysAgo: DAYS - day, isBrief })
    if (status !== EXIT_STATUS.done) return status
  }
  return EXIT_STATUS.done
}

const WEEKS_PASS = `
Ten weeks pass in the workspace, until today: deals move on, people talk and write, and some items
are deleted. Every two weeks parley backfill reads people, e-mails and CRM records again, with its clock
on that day, and at the end everything. Before it marks a row as deleted, it asks a second time: here
after three seconds or less, in your workspace after two minutes.

`

function introduction({ messages, meetings, deals }: DemoSizes, database: string, isWild: boolean): string {
  return `
The demo now serves a made-up workspace on this machine: ${wholeNumber(messages)} e-mails, ${wholeNumber(meetings)} meetings
and ${wholeNumber(deals)} deals ${isWild ? 'over two years' : 'to begin with'}. It refuses more than ${REQUESTS_PER_SECOND} requests per second.
parley does not know this limit and has to learn it.

parley backfill reads all of it into ${database}:

`
}

/** The file of this program, to start child processes from. */
const CLI = fileURLToPath(
  new URL(`../../cli${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)

/** The module that sets the clock of a process back. */
const PAST_CLOCK = new URL(`../../simulator/past-clock${extname(CLI)}`, import.meta.url)

/**
 * A backfill runs in a separate process group, so that Ctrl-C reaches only this process, which then ends the backfill.
 * The IPC channel ends it when this process dies, even by SIGKILL.
 */
async function runBackfill(
  { cwd, env, signal, stderr }: CommandContext,
  { file, simulator, daysAgo, isBrief = false }: DemoBackfill,
): Promise<ExitStatus> {
  if (signal.aborted) return EXIT_STATUS.unfinished
  const behindMs = daysAgo * DAY_MS
  const flags = isBrief ? BRIEF_FLAGS : ['--interval-scale', INTERVAL_SCALE]
  const clock = behindMs > 0 ? ['--import', `${PAST_CLOCK}?ms=${behindMs}`] : []
  const child = fork(CLI, ['backfill', '--log-level', 'error', ...flags], {
    detached: true,
    execArgv: [...process.execArgv, ...clock],
    cwd,
    env: {
      // The user's own settings must not take part.
      ...Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('PARLEY_'))),
      PARLEY_CONFIG: devNull,
      PARLEY_BASE_URL: simulator.url,
      PARLEY_API_KEY: simulator.apiKey,
      PARLEY_WORKSPACE_ID: simulator.workspaceId,
      PARLEY_DATABASE: file,
      // The workspace has deals in three currencies, which reports convert to one currency.
      PARLEY_REPORTING_CURRENCY: 'EUR',
      PARLEY_REPORTING_RATES: 'USD=0.9,JPY=0.006',
    },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const stop = () => child.kill()
  signal.addEventListener('abort', stop)
  const result = child.stdout ? text(child.stdout) : ''
  const [status] = (await once(child, 'exit')) as [ExitStatus | null]
  signal.removeEventListener('abort', stop)
  // The result is shown with the log: standard output is for what the demo itself prints. That of a stopped backfill
  // says how to continue it, but a demo begins again.
  const summary = signal.aborted ? '' : await result
  const [complete] = /^Complete: .*/m.exec(summary) ?? []
  if (!isBrief) stderr.write(summary)
  else if (complete !== undefined) stderr.write(`${utcDay(systemClock().now() - behindMs)}  ${complete}\n`)
  return status ?? EXIT_STATUS.unfinished
}

function reportUnfinished({ stderr, signal }: CommandContext, status: ExitStatus): ExitStatus {
  stderr.write(
    signal.aborted
      ? '\nThe demo was stopped, and all its processes have ended. The next demo starts from the beginning.\n'
      : '\nThe demo ended early: the backfill did not complete.\n',
  )
  return signal.aborted ? EXIT_STATUS.unfinished : status
}

/** Whether npx runs the demo. It puts the program on the search path for one run only. */
const isByNpx = ({ env }: Pick<CommandContext, 'env'>, script = ''): boolean =>
  env['npm_command'] === 'exec' || script.includes('/_npx/')

/** The command of this program, as a person would type it once it is installed. */
export function programCall(context: Pick<CommandContext, 'cwd' | 'env'>, script = ''): string {
  const isNamed = basename(script) === 'parley' || isByNpx(context, script)
  return isNamed ? 'parley' : `node ${shellWord(relative(context.cwd, CLI))}`
}

// ------------------------------------------------------------------------------------------------ the answers

async function printAnswers(
  { stdout, env, cwd }: CommandContext,
  path: string,
  database: string,
): Promise<void> {
  const { openDatabase } = await import('../../store/file/open.ts')
  const db = openDatabase({ path, readonly: true })
  const isColoured = hasColours(stdout, env)
  const style = (name: 'bold' | 'dim', text: string) => (isColoured ? styledText(name, text) : text)
  for (const { question, file, sql } of demoQuestions()) {
    const command = `sqlite3 -readonly -box ${shellWord(database)} < ${relative(cwd, file)}`
    stdout.write(
      `\n${style('bold', question)}\n\n${style('dim', command)}\n\n${answerLines(db, sql).join('\n')}\n`,
    )
  }
  db.close()
}

/** The first rows of the answer, without columns that only programs need. */
function answerLines(db: Sqlite, sql: DemoQuestion['sql']): string[] {
  const statement = db.prepare(sql).raw()
  const columns = statement.columns().map(({ name }, index) => ({ name, index }))
  const all = statement.all() as unknown[][]
  const rows = all.slice(0, MAX_ROWS).map(row => row.map(cellText))
  const lines = table(
    columns.map(({ name, index }) => ({
      title: name,
      align: rows.every(row => COUNT.test(row[index] ?? '')) ? ('right' as const) : ('left' as const),
      cell: (row: string[]) => row[index] ?? '',
      isEmpty: () => MACHINE_COLUMN.test(name),
    })),
    rows,
  )
  const more = all.length - rows.length
  return more > 0 ? [...lines, `and ${wholeNumber(more)} more`] : lines
}

const MAX_ROWS = 8
const MAX_CELL_LENGTH = 40
const MACHINE_COLUMN = /^url$|_id$/
const COUNT = /^[\d,.]*$/

function cellText(value: unknown): string {
  if (typeof value === 'number') return value.toLocaleString('en', { maximumFractionDigits: 1 })
  return shortText(String(value ?? ''), MAX_CELL_LENGTH)
}

const INSTALL_FIRST = `
npx ran parley without installing it. For the commands below, install the package first:
  npm install -g ./parleyd-*.tgz
`

function nextSteps({ cwd, env }: CommandContext, database: string): string {
  const [, script] = process.argv
  const parley = programCall({ cwd, env }, script)
  return `${isByNpx({ env }, script) ? INSTALL_FIRST : ''}
All these answers come from one SQLite file, ${database}. To look around in it:
  sqlite3 -readonly -box ${shellWord(database)} "SELECT * FROM live_members"
  sqlite3 -readonly -box ${shellWord(database)} "SELECT * FROM sync_status"
  ${parley} status --database ${shellWord(database)}
  ${parley} report demo.html --database ${shellWord(database)}
${relative(cwd, join(INSTALLATION, 'drizzle/README.md'))} explains every table and view.

For your own workspace:
  ${parley} init            asks for the API key and writes a settings file
  ${parley} backfill        reads everything; run it again to bring the file up to date
`
}

/** The questions that a sales leader would ask first, of those that come with parley. */
const NAMES = [
  'commit-of-the-quarter',
  'win-rate',
  'pipeline-moved-since-monday',
  'deals-with-one-contact',
  'customers-waiting',
] as const

interface DemoQuestion extends Pick<Question, 'question' | 'sql'> {
  /** The file with the statement, which the SQLite shell runs from version 3.38 on. */
  file: string
}

export function demoQuestions(): DemoQuestion[] {
  const all = readQuestions()
  return NAMES.flatMap(name => {
    const found = all.find(each => each.name === name)
    return found ? [{ question: found.question, sql: found.sql, file: questionFile(name) }] : []
  })
}

const MADE_FOR = 'made_for'
const DEMO = 'demo'
const MODE = 0o600

/**
 * Creates an empty warehouse that is marked as created by a demo. Replaces a file with that mark, or an empty database.
 * @throws StopError (exit status 64) when the file is any other database; the file is not changed
 */
async function createDemoDatabase(file: string, daysAgo: number): Promise<void> {
  const [{ readDatabase }, { lockDatabase }, { openStoreWhenFree }] = await Promise.all([
    import('../../store/file/open.ts'),
    import('../../store/file/lock.ts'),
    import('../../store/store.ts'),
  ])
  const today = systemClock()
  const clock = { ...today, now: () => today.now() - daysAgo * DAY_MS }
  if (existsSync(file)) {
    if (!readDatabase({ path: file }, isEmptyOrMarked)) throw notDemoFile(file)
    lockDatabase(file, clock, MODE).release()
    for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
  }
  const store = await openStoreWhenFree({ path: file, mode: MODE, command: DEMO, pid: process.pid, clock })
  await store.transaction(() => store.state.setMeta(MADE_FOR, DEMO))
  store.close()
}

function isEmptyOrMarked(db: Sqlite): boolean {
  if (db.prepare('SELECT count(*) FROM sqlite_master').pluck().get() === 0) return true
  return readMeta(db, MADE_FOR) === DEMO
}

/** Replaces a hint about a setting or about the data of a workspace, since a demo has neither. */
function withoutSettings(error: unknown): unknown {
  if (!(error instanceof StopError) || !/database\.path|parley restore/.test(error.hint ?? '')) return error
  const { message, code, exitStatus } = error
  const hint = 'Name another file with --database, in a folder that exists and in which you may write.'
  return new StopError(message, { code, exitStatus, hint, cause: error })
}

function notDemoFile(file: string): StopError {
  return new StopError(`${file} already exists, and parley demo did not create it`, {
    code: 'demo-database-exists',
    exitStatus: EXIT_STATUS.usage,
    hint: 'The file was not changed. Name another one with --database, or move it away.',
  })
}
