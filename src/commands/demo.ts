import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { devNull } from 'node:os'
import { basename, relative, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Option } from 'commander'
import { systemClock } from '../clock.ts'
import type { Environment } from '../config.ts'
import { EXIT_STATUS, type ExitStatus, StopError } from '../errors.ts'
import type { Sqlite } from '../store/open.ts'
import { type CommandContext, type CommandDefinition, mayColour } from './command.ts'
import { DEMO_QUESTIONS } from './demo-questions.ts'
import { table } from './table.ts'
import { wholeNumber } from './wording.ts'

export interface DemoOptions {
  database: string
  messages: string
}

const CLI = fileURLToPath(
  new URL(`../cli${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)

/** Requests a second that the simulator allows, and at once. */
const LIMIT = { rate: 400, burst: 100 }

export const demoCommand: CommandDefinition<DemoOptions> = {
  description:
    'Serves a made-up workspace, reads it into a SQLite file with the real parley backfill, and asks that file a few questions. Nothing outside this machine is reached, no settings are needed or used, and only a file that an earlier demo made is written over.',
  settings: [],
  options: [
    new Option('--database <file>', 'the file that is left behind').default('demo.db'),
    new Option('--messages <count>', 'e-mails of the workspace; all else goes with them').default('4000'),
  ],
  examples: [
    ['parley demo', 'half a minute; leaves demo.db behind'],
    ['parley demo --messages 100000 --database large.db', 'a larger workspace, in a few minutes'],
  ],
  async run(context, { options }) {
    const { stdout, stderr, env, cwd, signal } = context
    const sizes = sizesFor(options.messages)
    const file = resolve(cwd, options.database)
    await makeRoom(file)
    stderr.write(beforehand(sizes, options.database))
    const simulator = startSimulator(env, sizes)
    const stop = () => simulator.kill()
    signal.addEventListener('abort', stop)
    try {
      const status = await backfill(context, { file, service: await listening(simulator, signal) })
      if (signal.aborted || status !== EXIT_STATUS.done) return notFinished(context, status)
      await answerQuestions(context, file)
      stdout.write(howToGoOn(cwd, options.database))
      return EXIT_STATUS.done
    } finally {
      signal.removeEventListener('abort', stop)
      await ended(simulator)
    }
  },
}

// ------------------------------------------------------------------------------------------------ the workspace

interface Sizes {
  messages: number
  meetings: number
  deals: number
}

function sizesFor(text: string): Sizes {
  const messages = Number(text)
  if (!/^\d{3,7}$/.test(text)) {
    throw new StopError(`--messages: expected a whole number from 100 to 9999999, not ${text}`, {
      code: 'demo-size',
      exitStatus: EXIT_STATUS.usage,
    })
  }
  return { messages, meetings: Math.ceil(messages / 10), deals: Math.ceil(messages / 30) }
}

function beforehand({ messages, meetings, deals }: Sizes, database: string): string {
  return `
parley simulate now serves a made-up workspace on this machine: ${wholeNumber(messages)} e-mails, ${wholeNumber(meetings)} meetings
and ${wholeNumber(deals)} deals over two years. It refuses more than ${LIMIT.rate} requests a second; parley does not
know that and has to find it out.

parley backfill reads all of it into ${database}:

`
}

interface Service {
  url: string
  key: string
  workspace_id: string
}

/**
 * In a group of its own, so that Ctrl-C reaches this process alone, which then ends its children in order; and with a
 * channel to it, so that a child ends when this process does, even on SIGKILL.
 */
const APART = { detached: true } as const

function startSimulator(env: Environment, { messages, meetings, deals }: Sizes): ChildProcess {
  const sizes = ['--messages', messages, '--meetings', meetings, '--deals', deals].map(String)
  const limit = `token-bucket:${LIMIT.rate},${LIMIT.burst}`
  const behaviour = ['--now', 'real', '--latency', '15', '--limit', limit]
  return fork(CLI, ['simulate', '--port', '0', '--json', ...sizes, ...behaviour], {
    ...APART,
    env: foreign(env),
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  })
}

/** Undefined when it was ended before it listened. */
async function listening({ stdout }: ChildProcess, signal: AbortSignal): Promise<Service | undefined> {
  if (stdout) for await (const line of createInterface({ input: stdout })) return JSON.parse(line) as Service
  if (signal.aborted) return undefined
  throw new Error('parley simulate ended before it listened')
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill()
  await once(child, 'exit')
}

// ------------------------------------------------------------------------------------------------ the file

const MADE_FOR = 'made_for'
const DEMO = 'demo'

/** An empty warehouse, marked as the demo's. A file that is not marked so is somebody's own and stays. */
async function makeRoom(file: string): Promise<void> {
  const [{ openDatabase }, { lockDatabase }, { openStore }] = await Promise.all([
    import('../store/open.ts'),
    import('../store/lock.ts'),
    import('../store/store.ts'),
  ])
  if (existsSync(file)) {
    const db = openDatabase({ path: file, readonly: true })
    const isOurs = isEmptyOrMarked(db)
    db.close()
    if (!isOurs) throw notOurs(file)
    lockDatabase(file).release()
    for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
  }
  const store = openStore({ path: file, mode: 0o600, command: DEMO, pid: process.pid, clock: systemClock() })
  await store.transaction(() => store.state.setMeta(MADE_FOR, DEMO))
  store.close()
}

function isEmptyOrMarked(db: Sqlite): boolean {
  if (db.prepare('SELECT count(*) FROM sqlite_master').pluck().get() === 0) return true
  const mark = db.prepare('SELECT value FROM sync_meta WHERE key = ?').pluck().get(MADE_FOR)
  return mark === DEMO
}

function notOurs(file: string): StopError {
  return new StopError(`${file} is there already and was not made by a demo`, {
    code: 'demo-database-exists',
    exitStatus: EXIT_STATUS.usage,
    hint: 'It was not touched. Name another file with --database, or move this one away.',
  })
}

/** The real command in a process of its own, with the terminal as its own. */
async function backfill(
  { cwd, env, signal }: CommandContext,
  { file, service }: { file: string; service: Service | undefined },
): Promise<ExitStatus> {
  if (service === undefined || signal.aborted) return EXIT_STATUS.unfinished
  const child = fork(CLI, ['backfill', '--log-level', 'error'], {
    ...APART,
    cwd,
    env: {
      ...foreign(env),
      PARLEY_BASE_URL: service.url,
      PARLEY_API_KEY: service.key,
      PARLEY_WORKSPACE_ID: service.workspace_id,
      PARLEY_DATABASE: file,
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const stop = () => child.kill()
  signal.addEventListener('abort', stop)
  const [status] = (await once(child, 'exit')) as [ExitStatus | null]
  signal.removeEventListener('abort', stop)
  return status ?? EXIT_STATUS.unfinished
}

/** Settings of the person who runs the demo are not for it. */
function foreign(env: Environment): Environment {
  const others = Object.entries(env).filter(([name]) => !name.startsWith('PARLEY_'))
  return { ...Object.fromEntries(others), PARLEY_CONFIG: devNull }
}

function notFinished({ stderr, signal }: CommandContext, status: ExitStatus): ExitStatus {
  stderr.write(
    signal.aborted
      ? '\nThe demo was stopped, and nothing of it is running any more. Started again it begins anew.\n'
      : '\nThe demo ended early: the backfill did not get to its end.\n',
  )
  return signal.aborted ? EXIT_STATUS.unfinished : status
}

// ------------------------------------------------------------------------------------------------ the answers

async function answerQuestions({ stdout, env }: CommandContext, file: string): Promise<void> {
  const { openDatabase } = await import('../store/open.ts')
  const db = openDatabase({ path: file, readonly: true })
  const [bold, dim] = mayColour(stdout, env) ? [styled(1, 22), styled(2, 22)] : [plain, plain]
  for (const { question, sql } of DEMO_QUESTIONS) {
    const statement = db.prepare(sql).raw()
    const columns = statement.columns().map(({ name }, index) => ({ name, index }))
    const rows = (statement.all() as unknown[][]).map(row => row.map(cellOf))
    const lines = table(
      columns.map(({ name, index }) => ({
        title: name,
        align: rows.every(row => COUNT.test(row[index] ?? '')) ? 'right' : 'left',
        cell: (row: string[]) => row[index] ?? '',
      })),
      rows,
    )
    stdout.write(`\n${bold(question)}\n\n${dim(sql)}\n\n${lines.join('\n')}\n`)
  }
  db.close()
}

const COUNT = /^[\d,]*$/
const CONTROLS = /\p{Cc}+/gu

function cellOf(value: unknown): string {
  if (typeof value === 'number') return wholeNumber(value)
  return value === null ? '' : String(value).replace(CONTROLS, ' ')
}

const plain = (text: string) => text
const styled = (on: number, off: number) => (text: string) => `\u001b[${on}m${text}\u001b[${off}m`

function howToGoOn(cwd: string, database: string): string {
  const parley = basename(process.argv[1] ?? '') === 'parley' ? 'parley' : `node ${relative(cwd, CLI)}`
  const withoutShell = existsSync(resolve(cwd, 'node_modules/better-sqlite3'))
    ? `or without sqlite3:
  node -e "console.table(require('better-sqlite3')('${database}').prepare('SELECT * FROM live_members').all())"
`
    : ''
  return `
All of this came from one SQLite file, ${database}. Look around in it:
  sqlite3 -box ${database} "SELECT * FROM live_members"
  sqlite3 ${database} "SELECT * FROM sync_status"
  ${parley} status --database ${database}
${withoutShell}drizzle/README.md explains every table and view.

For your own workspace:
  ${parley} init            writes a settings file and says what to fill in
  ${parley} backfill        reads everything; the same again brings all up to date
`
}
