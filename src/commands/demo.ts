import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Option } from 'commander'
import { EXIT_STATUS, type ExitStatus } from '../errors.ts'
import type { CommandContext, CommandDefinition } from './command.ts'
import { DEMO_QUESTIONS } from './demo-questions.ts'

interface DemoOptions {
  database: string
}

const CLI = fileURLToPath(
  new URL(`../cli${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)

/** Large enough to be worth looking at, small enough for half a minute. */
const WORKSPACE = ['--messages', '4000', '--meetings', '400', '--deals', '150', '--latency', '8']

export const demoCommand: CommandDefinition<DemoOptions> = {
  description:
    'Serves a made-up workspace, reads it into a SQLite file with the real `parley backfill`, and asks that file a few questions. Nothing outside this machine is reached.',
  settings: [],
  options: [new Option('--database <file>', 'the file that is left behind').default('demo.db')],
  examples: [['parley demo', 'leaves demo.db behind']],
  async run(context, { options }) {
    const file = resolve(context.cwd, options.database)
    for (const suffix of ['', '-wal', '-shm', '-lock']) rmSync(file + suffix, { force: true })
    const say = (text: string) => context.stderr.write(`${text}\n`)
    say('A made-up workspace: 4,000 e-mails, 400 meetings, 150 deals, served by `parley simulate`.')
    const simulator = spawn(process.execPath, [CLI, 'simulate', '--port', '0', '--json', ...WORKSPACE], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    try {
      const { url, apiKey, workspaceId } = await firstLine(simulator.stdout)
      say(`It listens on ${url}. Now \`parley backfill\` reads all of it into ${options.database}:\n`)
      const status = await backfill(context, {
        PARLEY_BASE_URL: url,
        PARLEY_API_KEY: apiKey,
        PARLEY_WORKSPACE_ID: workspaceId,
        PARLEY_DATABASE: file,
      })
      if (status !== EXIT_STATUS.done) return status
      await answerQuestions(context, file)
      context.stdout.write(howToGoOn(options.database))
      return EXIT_STATUS.done
    } finally {
      simulator.kill()
    }
  },
}

interface Listening {
  url: string
  apiKey: string
  workspaceId: string
}

async function firstLine(stream: NodeJS.ReadableStream): Promise<Listening> {
  for await (const line of createInterface({ input: stream })) return JSON.parse(line) as Listening
  throw new Error('The simulator ended before it listened')
}

/** The real command in a process of its own, with the terminal as its own. */
async function backfill(
  { env, cwd, signal }: CommandContext,
  settings: Record<string, string>,
): Promise<ExitStatus> {
  const child = spawn(process.execPath, [CLI, 'backfill', '--log-level', 'error'], {
    cwd,
    env: { ...env, ...settings },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const stop = () => child.kill('SIGTERM')
  signal.addEventListener('abort', stop)
  const [status] = (await once(child, 'exit')) as [ExitStatus | null]
  signal.removeEventListener('abort', stop)
  return status ?? EXIT_STATUS.unfinished
}

async function answerQuestions({ stdout }: CommandContext, file: string): Promise<void> {
  const { openDatabase } = await import('../store/open.ts')
  const { alignTable } = await import('./table.ts')
  const db = openDatabase({ path: file, readonly: true })
  for (const { question, sql } of DEMO_QUESTIONS) {
    const statement = db.prepare(sql).raw()
    const header = statement.columns().map(({ name }) => name)
    const rows = (statement.all() as unknown[][]).map(row =>
      row.map(cell => (cell === null ? '' : String(cell))),
    )
    stdout.write(`\n-- ${question}\n${sql}\n\n${alignTable([header, ...rows])}\n`)
  }
  db.close()
}

function howToGoOn(file: string): string {
  return `
All of this came from one SQLite file. Look around in it:
  sqlite3 ${file} "SELECT * FROM sync_status"      what was read, and how fresh it is
  sqlite3 ${file} .tables                          every table; drizzle/README.md explains them
Run it for real:
  parley init                                     writes config/parley.toml: fill in address, key and workspace
  parley doctor                                   checks them
  parley backfill                                 reads everything; run it again to bring all up to date
`
}
