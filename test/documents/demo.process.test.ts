import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect, test } from 'vitest'
import { demoQuestions, programCall } from '../../src/commands/demo/demo.ts'
import { NEVER_NULL } from '../../src/dictionary/described-table.ts'
import { describedTable } from '../../src/dictionary/dictionary.ts'
import { readQuestions } from '../../src/dictionary/questions.ts'
import { quote } from '../../src/store/database/sql.ts'
import { isLocked } from '../../src/store/file/lock.ts'
import { openDatabase } from '../../src/store/file/open.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { type Ended, emptyFolder, parleyProcess } from '../cli/parley.ts'
import { isOfType } from '../support/dictionary-types.ts'
import { until } from '../support/until.ts'
import { DEMO_TRAPS } from './demo-traps.ts'

const PROGRAM = new URL('../../dist/cli.js', import.meta.url).pathname
const SCHEMA_PAGE = new URL('../../drizzle/README.md', import.meta.url)

test.each<[command: RegExp, script: string, env: Record<string, string>]>([
  [/^parley$/, '/usr/local/bin/parley', {}],
  [/^parley$/, '/home/me/.npm/_npx/1/node_modules/.bin/parley', { npm_command: 'exec' }],
  [/^parley$/, '/home/me/.npm/_npx/1/node_modules/parleyd/dist/cli.js', {}],
  [/^node \S+cli\.[jt]s$/, '/srv/parley/dist/cli.js', {}],
])(
  'the demo advises commands that the shell finds once the program is installed: %s for %s',
  (command, script, env) => {
    expect(programCall({ cwd: '/', env }, script)).toMatch(command)
  },
)

test('a demo that npx runs advises first to install the program', async () => {
  const cwd = emptyFolder()
  const env = { npm_command: 'exec' }
  const { stdout } = await parleyProcess(['demo', '--wild', '--messages', '100'], { cwd, env })
  expect(stdout).toMatch(/install the package first:\n {2}npm install -g .*\n {2}parley init /s)
})

test.each<[what: string, path: string, make: (path: string) => void]>([
  ['a text', 'notes.txt', path => writeFileSync(path, 'hello')],
  ['a folder', 'folder', path => mkdirSync(path)],
  ['in a folder that does not exist', 'nowhere/demo.db', () => {}],
])('a demo whose file is %s advises another --database, and no setting', async (_, path, make) => {
  const cwd = emptyFolder()
  make(join(cwd, path))
  const { status, stderr } = await parleyProcess(['demo', '--database', path], { cwd })
  expect(status).toBe(73)
  expect(stderr).toContain('hint: Name another file with --database, ')
  expect(stderr).not.toMatch(/database\.path|restore/)
})

describe('a demo that has ended', () => {
  const cwd = emptyFolder()
  let ended: Ended

  beforeAll(async () => {
    // A settings file and settings of the person who tries it must not get in the way.
    writeFileSync(join(cwd, 'parley.toml'), 'nonsense = 1\n')
    const env = { PARLEY_CONFIG: 'parley.toml', PARLEY_DATABASE: 'mine.db' }
    ended = await parleyProcess(['demo', '--messages', '1000'], { cwd, env })
  })

  test('the demo reads the whole workspace and keeps its file', () => {
    expect(ended.status, ended.stderr).toBe(0)
    expect(ended.stderr).toContain('Complete: ')
    expect(existsSync(join(cwd, 'demo.db'))).toBe(true)
    expect(existsSync(join(cwd, 'mine.db'))).toBe(false)
  })

  test.each(demoQuestions())('the demo answers: $question', ({ question, file }) => {
    const command = `sqlite3 -readonly -box demo.db < ${relative(cwd, file)}`
    const answer = ended.stdout.split(`${question}\n\n${command}`)[1] ?? ''
    // The titles, and below them at least one row.
    expect(answer.trimStart().split('\n\n')[0]?.split('\n').length).toBeGreaterThan(1)
  })

  test('the demo ends with the path of the page that explains the tables', () => {
    const page = relative(cwd, SCHEMA_PAGE.pathname)
    expect(ended.stdout).toContain(`\n${page} explains every table and view.\n`)
  })

  test('every question has an answer in the file of a demo', () => {
    const db = openDatabase({ path: join(cwd, 'demo.db'), readonly: true })
    const empty = readQuestions().filter(({ sql }) => db.prepare(sql).all().length === 0)
    db.close()
    // Everyone in the demo has been there from the start.
    const ofNewPeople = ['new-people-at-known-accounts', 'ramp-of-new-members']
    expect(empty.map(({ name }) => name).filter(name => !ofNewPeople.includes(name))).toEqual([])
  })

  test('the demo shows a tidy workspace: short names, differing talk ratios, and few overdue deals', () => {
    const db = openDatabase({ path: join(cwd, 'demo.db'), readonly: true })
    const one = (sql: string) => db.prepare(sql).pluck().get() as number
    const longest = one(
      'SELECT max(length(name)) FROM (SELECT name FROM crm_objects UNION ALL SELECT name FROM crm_fields)',
    )
    const ratios = one('SELECT count(DISTINCT speaker_ratio) FROM meeting_speakers WHERE position = 0')
    const [open, late] = ['1', "close_date < date('now')"].map(condition =>
      one(`SELECT count(*) FROM live_crm_deal WHERE NOT is_closed AND ${condition}`),
    )
    db.close()
    expect(longest).toBeLessThan(40)
    expect(ratios).toBeGreaterThan(20)
    expect(Number(late) / Number(open)).toBeGreaterThan(0)
    expect(Number(late) / Number(open)).toBeLessThan(0.4)
  })

  test.each(DEMO_TRAPS)('in the workspace of the demo, $trap', ({ sql }) => {
    const db = openDatabase({ path: join(cwd, 'demo.db'), readonly: true })
    const found = db.prepare(sql).pluck().get()
    db.close()
    expect(found).toBeGreaterThan(0)
  })

  test('only people of other domains count as strangers, though members have left', () => {
    const db = openDatabase({ path: join(cwd, 'demo.db'), readonly: true })
    const senders = db.prepare("SELECT handle FROM message_participants WHERE role = 'FROM'").pluck().all()
    const members = db
      .prepare("SELECT email FROM members WHERE email NOT LIKE '%@gmail.com'")
      .pluck()
      .all() as string[]
    const [own = ''] = members.map(email => email.replace(/.*@/, ''))
    const left = (senders as string[]).filter(
      handle => handle.endsWith(`@${own}`) && !members.includes(handle),
    )
    const question = readQuestions().find(({ name }) => name === 'external-domains')
    const rows = db.prepare(question?.sql.replace(/LIMIT \d+/, '') ?? '').all() as { domain: string }[]
    db.close()
    expect(left).not.toEqual([])
    expect(rows.map(({ domain }) => domain)).not.toContain(own)
  })

  test('the commands that a demo prints work as printed', async () => {
    const commands = [...ended.stdout.matchAll(/^ {2}node \S*cli\.js (status .*)$/gm)]
    expect(commands).toHaveLength(1)
    const { status, stdout } = await parleyProcess((commands[0]?.[1] ?? '').split(' '), { cwd })
    expect(status).toBe(0)
    expect(stdout).toContain('transcripts')
  })

  test('every query of the schema page finds something in the file of a demo', () => {
    const queries = [...readFileSync(SCHEMA_PAGE, 'utf8').matchAll(/^```sql\n(.*?)^```/gms)]
    expect(queries.length).toBeGreaterThan(5)
    const db = openDatabase({ path: join(cwd, 'demo.db'), readonly: true })
    for (const [, sql = ''] of queries) expect(db.prepare(sql).all(), sql).not.toEqual([])
    db.close()
  })

  test('every value in the file of a demo agrees with the dictionary', () => {
    const { told, wrong } = againstDictionary(join(cwd, 'demo.db'))
    expect(told).toBeGreaterThan(700)
    expect(wrong).toEqual([])
  })

  test('the demo refuses a file that no demo created, and does not change it', async () => {
    const db = openWarehouse({ path: join(cwd, 'own.db') })
    db.close()
    const before = readFileSync(join(cwd, 'own.db'))
    const { status, stderr } = await parleyProcess(['demo', '--database', 'own.db'], { cwd })
    expect(status).toBe(64)
    expect(stderr).toContain('parley demo did not create it')
    expect(readFileSync(join(cwd, 'own.db')).equals(before)).toBe(true)
  })
})

test('every value of a demo with hostile names agrees with the dictionary', async () => {
  const cwd = emptyFolder()
  const { status, stderr } = await parleyProcess(['demo', '--wild', '--messages', '300'], { cwd })
  expect(status, stderr).toBe(0)
  expect(stderr.match(/^Complete: /gm)).toHaveLength(1)
  const { told, wrong } = againstDictionary(join(cwd, 'demo.db'))
  expect(told).toBeGreaterThan(900)
  expect(wrong).toEqual([])
})

/** The number of columns in the dictionary, and every value that disagrees with it. */
function againstDictionary(file: string): { told: number; wrong: string[] } {
  const db = openDatabase({ path: file, readonly: true })
  const told = db.prepare('SELECT * FROM data_dictionary').all() as Record<string, string>[]
  const wrong = told.flatMap(
    ({ table_name: table = '', column_name: column = '', type = '', null_meaning }) => {
      const values = db
        .prepare(`SELECT DISTINCT ${quote(column)} FROM ${quote(table)}`)
        .pluck()
        .all()
      const strange = values.filter(value =>
        value === null ? null_meaning === NEVER_NULL : !isOfType(type, value) && !isFieldAsSent(table, type),
      )
      return strange.map(value => `${table}.${column}: ${value}`)
    },
  )
  db.close()
  return { told: told.length, wrong }
}

/** Invalid dates and times of CRM fields are stored as they were sent. */
const isFieldAsSent = (table: string, type: string): boolean =>
  (type === 'timestamp' || type === 'date') &&
  /^((live|labelled)_)?crm_/.test(table) &&
  !describedTable(table)

/** Processes that an unusual size of the workspace, or the file, betrays as this demo's. */
function running(marks: readonly string[]): string[] {
  const all = execFileSync('ps', ['-A', '-o', 'args='], { encoding: 'utf8' }).split('\n')
  return all.filter(line => line.includes('cli.js') && marks.some(mark => line.includes(mark)))
}

function rowsIn(file: string): number {
  if (!existsSync(file)) return 0
  try {
    const db = openDatabase({ path: file, readonly: true })
    const rows = db.prepare('SELECT count(*) FROM members').pluck().get()
    db.close()
    return Number(rows)
  } catch {
    // It is only just being made.
    return 0
  }
}

describe.each([
  ['SIGINT', 75],
  ['SIGKILL', null],
] as const)('a demo that receives %s while it reads', (signal, expected) => {
  test('the demo leaves no process running, and says that the next one starts from the beginning', async () => {
    const messages = String(100_000 + (process.pid % 100_000) + (signal === 'SIGINT' ? 0 : 100_000))
    const cwd = emptyFolder()
    const child = spawn(process.execPath, [PROGRAM, 'demo', '--messages', messages], {
      cwd,
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const said = text(child.stderr)
    const status = new Promise<number | null>(resolve => child.on('exit', resolve))
    const rows = () => rowsIn(join(cwd, 'demo.db'))
    expect(await until(rows, count => count > 0)).toBeGreaterThan(0)
    const marks = [`--messages ${messages}`]
    expect(running(marks)).toHaveLength(1)
    child.kill(signal)
    expect(await status).toBe(expected)
    const left = () => running(marks)
    expect(await until(left, processes => processes.length === 0)).toEqual([])
    const held = () => isLocked(join(cwd, 'demo.db'))
    expect(await until(held, isHeld => isHeld === false)).toBe(false)
    expect(await said).not.toContain('to continue where it stopped')
    if (signal === 'SIGINT') expect(await said).toContain('The next demo starts from the beginning.')
  })
})
