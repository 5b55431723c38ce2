import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { Option } from 'commander'
import { DAY_MS, isoInstant, systemClock, utcDay } from '../../base/clock.ts'
import { EXIT_STATUS, type ExitStatus, StopError } from '../../base/errors.ts'
import { INSTALLATION } from '../../base/installation.ts'
import { shellWord } from '../../base/safe-text.ts'
import { wholeNumber } from '../../base/whole-number.ts'
import { type Question, questionFile, readQuestions } from '../../dictionary/questions.ts'
import type { Sqlite } from '../../store/database/sqlite-types.ts'
import { readMeta } from '../../store/sync/meta.ts'
import { hasColours, styledText } from '../../terminal/output.ts'
import { table } from '../../terminal/table.ts'
import { shortText } from '../../terminal/wording.ts'
import type { CommandContext, CommandDefinition } from '../base/command.ts'
import { passDays } from './daily-changes.ts'
import {
  CLI,
  type DemoSizes,
  endProcess,
  LIMIT,
  parseSizes,
  type SimulatorAddress,
  startParley,
  startSimulatorProcess,
  waitForService,
} from './processes.ts'

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
    const { stdout, stderr, env, cwd, signal } = context
    const sizes = parseSizes(options.messages ?? (options.wild ? '4000' : '2000'))
    const file = resolve(cwd, options.database)
    const isWild = options.wild === true
    await createDemoDatabase(file, isWild ? 0 : DAYS)
    stderr.write(introduction(sizes, options.database, isWild))
    const simulator = startSimulatorProcess(env, sizes, isWild ? ['--now', 'real'] : pastWorkspaceFlags())
    const stop = () => simulator.kill()
    signal.addEventListener('abort', stop)
    try {
      const service = await waitForService(simulator, signal)
      if (service === undefined) return reportUnfinished(context, EXIT_STATUS.unfinished)
      const status = isWild
        ? await runBackfill(context, { file, service, daysAgo: 0 })
        : await runBackfills(context, { file, service }, sizes)
      if (signal.aborted || status !== EXIT_STATUS.done) return reportUnfinished(context, status)
      await printAnswers(context, file, options.database)
      stdout.write(nextSteps(context, options.database))
      return EXIT_STATUS.done
    } finally {
      signal.removeEventListener('abort', stop)
      await endProcess(simulator)
    }
  },
}

/** How many days pass in the workspace before each backfill of the demo: ten weeks in all. */
const DAYS_BEFORE_BACKFILLS = [0, 15, 15, 15, 15, 15] as const
const DAYS = DAYS_BEFORE_BACKFILLS.reduce<number>((sum, days) => sum + days, 0)

/** The history before the demo. With the days that pass during the demo, the history covers a year. */
const HISTORY_DAYS = 290

/** The workspace starts in the past and reaches the present during the demo. */
function pastWorkspaceFlags(): string[] {
  const begins = isoInstant(systemClock().now() - DAYS * DAY_MS)
  const workspace = ['--tidy', '--realistic', '--now', begins, '--history-days', String(HISTORY_DAYS)]
  return [...workspace, '--control', '--log-requests']
}

interface DemoBackfill {
  file: string
  service: SimulatorAddress
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
  { file, service }: Pick<DemoBackfill, 'file' | 'service'>,
  { messages }: DemoSizes,
): Promise<ExitStatus> {
  let day = 0
  for (const days of DAYS_BEFORE_BACKFILLS) {
    if (day === 0 && days > 0) context.stderr.write(WEEKS_PASS)
    // A demo that is stopped ends the simulator, so `passDays` fails then.
    await passDays({ service, from: day, to: day + days, messages }).catch(error => {
      if (!context.signal.aborted) throw error
    })
    day += days
    const isBrief = day > 0 && day < DAYS
    const status = await runBackfill(context, { file, service, daysAgo: DAYS - day, isBrief })
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
parley simulate now serves a made-up workspace on this machine: ${wholeNumber(messages)} e-mails, ${wholeNumber(meetings)} meetings
and ${wholeNumber(deals)} deals ${isWild ? 'over two years' : 'to begin with'}. It refuses more than ${LIMIT.perSecond} requests per second.
parley does not know this limit and has to learn it.

parley backfill reads all of it into ${database}:

`
}

async function runBackfill(
  { cwd, env, signal, stderr }: CommandContext,
  { file, service, daysAgo, isBrief = false }: DemoBackfill,
): Promise<ExitStatus> {
  if (signal.aborted) return EXIT_STATUS.unfinished
  const behindMs = daysAgo * DAY_MS
  const flags = isBrief ? BRIEF_FLAGS : ['--interval-scale', INTERVAL_SCALE]
  const child = startParley(['backfill', '--log-level', 'error', ...flags], {
    ...{ cwd, env, service, file, behindMs },
    ...(isBrief && { stdout: 'pipe' }),
  })
  const stop = () => child.kill()
  signal.addEventListener('abort', stop)
  const result = child.stdout ? text(child.stdout) : ''
  const [status] = (await once(child, 'exit')) as [ExitStatus | null]
  signal.removeEventListener('abort', stop)
  const [summary = ''] = /^Complete: .*/m.exec(await result) ?? []
  if (summary !== '' && isBrief) stderr.write(`${utcDay(systemClock().now() - behindMs)}  ${summary}\n`)
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

/** The command of this program, as a person would type it. `npx` puts it on the search path for one run only. */
export function programCall({ cwd, env }: Pick<CommandContext, 'cwd' | 'env'>, script = ''): string {
  const isInstalled = basename(script) === 'parley' && env['npm_command'] !== 'exec'
  return isInstalled ? 'parley' : `node ${shellWord(relative(cwd, CLI))}`
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

function nextSteps({ cwd, env }: CommandContext, database: string): string {
  const parley = programCall({ cwd, env }, process.argv[1])
  return `
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

function notDemoFile(file: string): StopError {
  return new StopError(`${file} already exists, and parley demo did not create it`, {
    code: 'demo-database-exists',
    exitStatus: EXIT_STATUS.usage,
    hint: 'The file was not changed. Name another one with --database, or move it away.',
  })
}
