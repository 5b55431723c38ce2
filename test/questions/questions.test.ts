import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { datasetteMetadata } from '../../src/commands/schema/datasette.ts'
import { readQuestions } from '../../src/dictionary/questions.ts'
import { openDatabase } from '../../src/store/file/open.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { requirePrograms } from '../systemd/tools.ts'
import { type DemoWarehouse, demoWarehouse } from './demo-warehouse.ts'
import { differences } from './differences.ts'
import { QUESTIONS } from './first-week/questions.ts'
import { FOLDER, type QuestionFile, questionFiles, questionNamed, withParameters } from './question-file.ts'
import type { Expected } from './recount.ts'
import { mentions } from './recount-talk.ts'
import { RECOUNTS } from './recounts.ts'

const files = questionFiles()
/** What one of SQLite, DuckDB, Spark and Trino does not have, or takes for something else. */
const NOT_PORTABLE =
  /->|\biif\(|\bFILTER\b|'now'|julianday|group_concat|substr|datetime\(|strftime|\bIS (NOT )?\d|\b(is_\w+|completed) (=|<>) |INTEGER|"/i
/** Both have a space where times have a `T`. */
const OTHER_SPELLING = /\b(datetime\(|CURRENT_TIMESTAMP)/i
const page = readFileSync(new URL('../README.md', FOLDER), 'utf8')
/** Follows each answer of the sqlite3 program. */
const END = '-- end of an answer --'
let warehouse: DemoWarehouse
const answered = new Map<string, Expected[]>()

beforeAll(async () => {
  requirePrograms('sqlite3')
  warehouse = await demoWarehouse()
})

/** Of one deal or thread: `answers.test.ts` has every row. */
const OF_ONE = ['one-deal', 'response-times-in-thread']

test('each question has one recount, of this workspace or of the first week', () => {
  const recounted = [...Object.keys(RECOUNTS), ...QUESTIONS.map(({ name }) => name), ...OF_ONE]
  expect(files.map(({ name }) => recounted.filter(each => each === name))).toEqual(
    files.map(({ name }) => [name]),
  )
})

test('no example on the page compares a time with datetime(), which writes it differently', () => {
  const examples = [...page.matchAll(/```sql\n(.*?)```/gs)].map(([, sql = '']) => sql)
  expect(examples.length).toBeGreaterThan(3)
  expect(examples.filter(sql => OTHER_SPELLING.test(sql))).toEqual([])
})

test('the condition on the page for the last ten days selects today and the nine days before it', () => {
  const [, condition] = /`([^`]*)` is the last ten days/.exec(page) ?? []
  const days = ask(`SELECT c.day FROM periods p JOIN calendar c ON ${condition}
    WHERE p.period = 'this week' ORDER BY c.day`)
  const last = ask(`SELECT c.day FROM periods p JOIN calendar c ON c.day <= p.today
    WHERE p.period = 'this week' ORDER BY c.day DESC LIMIT 10`)
  expect(days).toEqual(last.reverse())
})

describe.each(files)('$name', file => {
  test('the question has nothing that one of the engines lacks, and an order with a place for NULL', () => {
    const statement = file.sql.replace(/^--.*$/gm, '')
    expect(statement).not.toMatch(NOT_PORTABLE)
    expect(statement).not.toMatch(/[<>=] '\d{4}-/)
    expect(statement).toMatch(/^ORDER BY /m)
  })

  test('a question with a period heeds its end, or says that it is about everything since', () => {
    const isSince = /^-- {3}period .*\bsince it began$/m.test(file.sql)
    if (file.parameters.has('period'))
      expect(/\bp\.(to_day|utc_to)\b|\bperiod_(days|coverage)\b/.test(file.sql)).toBe(!isSince)
  })

  test('the question starts with its text, explains its parameters, and is on the page for analysts', () => {
    expect(file.question).toMatch(/^[A-Z].*\?$/)
    expect(file.explained).toEqual([...file.parameters.keys()])
    const line = `- [\`${file.name}.sql\`](questions/${file.name}.sql): ${file.question}`
    expect(page.split('\n').find(each => each.includes(`(questions/${file.name}.sql)`))).toBe(line)
  })
})

test('every question runs in the sqlite3 program unchanged, with the same answer', () => {
  const asked = files.map(file => withParameters(file, RECOUNTS[file.name]?.parameters ?? {}))
  const { answers, ...asItIs } = sqlite3([...files.map(({ sql }) => sql), ...asked])
  expect(asItIs).toEqual({ status: 0, stderr: '' })
  for (const [at, sql] of asked.entries()) {
    const rows = answers[files.length + at] ?? []
    expect([files[at]?.name, ...differences(rows, ask(sql))]).toEqual([files[at]?.name])
  }
})

test.each(Object.entries(RECOUNTS))('%s and its recount give the same answer', (name, recount) => {
  const expected = recount.expected(warehouse)
  expect(expected.length).toBeGreaterThanOrEqual(recount.least ?? 1)
  const answer = ask(withParameters(questionNamed(name), recount.parameters ?? {}))
  expect(differences(answer, expected)).toEqual([])
})

interface Query {
  title: string
  params: string[]
  sql: string
}

test('every question is a query of Datasette, whose fields are empty or have values as text', () => {
  const metadata = datasetteMetadata('demo', [], readQuestions()) as {
    databases: { demo: { queries: Record<string, Query> } }
  }
  const { queries } = metadata.databases.demo
  expect(Object.keys(queries)).toEqual(files.map(({ name }) => name))
  const db = openDatabase({ path: warehouse.file, readonly: true })
  try {
    for (const file of files) {
      const query = queries[file.name]
      const sql = query?.sql ?? ''
      const fieldsWith = (values: Readonly<Record<string, string>>) =>
        Object.fromEntries((query?.params ?? []).map(name => [name, values[name] ?? '']))
      expect([query?.title, db.prepare(sql).all(fieldsWith({}))]).toEqual([file.question, ask(file.sql)])
      const values = literals(RECOUNTS[file.name]?.parameters ?? {})
      const asGiven = withParameters(file, RECOUNTS[file.name]?.parameters ?? {})
      expect([file.name, db.prepare(sql).all(fieldsWith(values))]).toEqual([file.name, ask(asGiven)])
    }
    const silent = db.prepare(queries['contacts-not-spoken-to']?.sql ?? '').all({ days: '10000' })
    expect(silent.filter(row => (row as Expected)['days_silent'] !== null)).toEqual([])
  } finally {
    db.close()
  }
})

/** The texts that these SQL literals stand for. */
const literals = (parameters: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(parameters).map(([name, sql]) => [name, sql.replace(/^'(.*)'$/, '$1')]))

test('every question has the same answer after ANALYZE, in this SQLite and in the sqlite3 program', () => {
  const path = copyOfWarehouse()
  const db = openWarehouse({ path })
  try {
    db.exec('ANALYZE')
    const asked = files.map(file => withParameters(file, RECOUNTS[file.name]?.parameters ?? {}))
    const { answers } = sqlite3(asked, path)
    for (const [at, sql] of asked.entries()) {
      const wanted = ask(sql)
      expect([files[at]?.name, db.prepare(sql).all()]).toEqual([files[at]?.name, wanted])
      expect([files[at]?.name, ...differences(answers[at] ?? [], wanted)]).toEqual([files[at]?.name])
    }
  } finally {
    db.close()
  }
})

test('every question has one order of its rows, in whatever order SQLite finds them', () => {
  const db = openDatabase({ path: warehouse.file, readonly: true })
  try {
    db.pragma('reverse_unordered_selects = on')
    for (const file of files) {
      const sql = withParameters(file, RECOUNTS[file.name]?.parameters ?? {})
      expect([file.name, db.prepare(sql).all()]).toEqual([file.name, ask(sql)])
    }
  } finally {
    db.close()
  }
})

test.each([
  [
    'activities',
    "UPDATE sync_segments SET listed_at = NULL WHERE feed LIKE 'activities.%'",
    'no: not yet read to its end',
  ],
  [
    'messages',
    "UPDATE sync_segments SET listed_at = '2026-05-20T00:00:00.000Z' WHERE feed LIKE 'messages.%'",
    'no: it was not over when it was read',
  ],
  [
    'messages',
    "UPDATE messages SET text_state = 'pending' WHERE received_at LIKE '2026-05-%'",
    'no: details or texts are still to be read',
  ],
  [
    'transcripts',
    "UPDATE meetings SET transcript_state = 'pending' WHERE start_time LIKE '2026-05-%'",
    'no: details or texts are still to be read',
  ],
  [
    'transcripts',
    "UPDATE meetings SET transcript_state = 'pending' WHERE start_time NOT LIKE '2026-05-%'",
    'yes',
  ],
  ['transcripts', "UPDATE meetings SET transcript_state = 'pending', access = 'withheld'", 'yes'],
  [
    'access_logs',
    "DELETE FROM sync_segments WHERE feed LIKE 'access_logs.%'",
    'no: not all of it was asked for',
  ],
  [
    'access_logs',
    "UPDATE sync_resources SET unavailable_since = '2026-01-01' WHERE resource = 'access_logs'",
    'not offered by this workspace',
  ],
])('the completeness of a month of %s is right after %s', (resource, change, verdict) => {
  const rows = askChanged(questionNamed('coverage-of-a-month'), change)
  expect(rows.find(row => row['resource'] === resource)?.['complete']).toBe(verdict)
})

test('a playbook question that a result leaves out counts as missing', () => {
  const answer = ask(questionNamed('playbook-questions-unanswered').sql)
  expect(answer.filter(({ missing }) => Number(missing) > 0)).not.toEqual([])
  expect(answer.filter(({ unanswered }) => Number(unanswered) > 0)).not.toEqual([])
})

test.each(['価格', '価', 'to', '文字起こし'])('a term may be of any language and length: %s', term => {
  const answer = ask(withParameters(questionNamed('mentions-of-a-term-by-month'), { term: `'%${term}%'` }))
  expect(answer.length).toBeGreaterThan(0)
  expect(differences(answer, mentions(warehouse, term))).toEqual([])
})

/** The answer with the usual parameters, on a copy that was changed. */
function askChanged(file: QuestionFile, change: string): Expected[] {
  const db = openWarehouse({ path: copyOfWarehouse() })
  try {
    db.exec(change)
    return db.prepare(withParameters(file, RECOUNTS[file.name]?.parameters ?? {})).all() as Expected[]
  } finally {
    db.close()
  }
}

function copyOfWarehouse(): string {
  const path = join(mkdtempSync(join(tmpdir(), 'parley-questions-')), 'parley.db')
  copyFileSync(warehouse.file, path)
  return path
}

/** No test changes this warehouse, and several ask it the same. */
function ask(sql: string): Expected[] {
  const known = answered.get(sql)
  if (known !== undefined) return known
  const db = openDatabase({ path: warehouse.file, readonly: true })
  try {
    const answer = db.prepare(sql).all() as Expected[]
    answered.set(sql, answer)
    return answer
  } finally {
    db.close()
  }
}

/** The answers of the sqlite3 program, run once: it prints nothing for an answer without rows. */
function sqlite3(statements: readonly string[], path = warehouse.file) {
  const input = statements.map(sql => `${sql}\n.print ${END}\n`).join('')
  const { stdout, stderr, status } = spawnSync('sqlite3', ['-readonly', '-json', path], {
    input,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  })
  const texts = stdout.split(`${END}\n`).slice(0, -1)
  return {
    answers: texts.map((json): Expected[] => (json.trim() === '' ? [] : JSON.parse(json))),
    stderr,
    status,
  }
}
