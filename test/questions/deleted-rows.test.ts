import { copyFileSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { type DemoWarehouse, demoWarehouse } from './demo-warehouse.ts'
import { questionFiles, withParameters } from './question-file.ts'
import type { Expected } from './recount.ts'
import { RECOUNTS } from './recounts.ts'

/** The rows to delete, by the column whose last character decides. */
const DELETED: Readonly<Record<string, string>> = {
  activities: 'id',
  message_copies: 'id',
  // By the id of the copy that the e-mail was merged from.
  messages: 'id',
  meetings: 'id',
  playbooks: 'id',
  playbook_results: 'id',
  crm_records: 'id',
  access_logs: 'id',
  members: 'id',
}
const third = (column: string, part: number) => `unicode(substr(${column}, -2)) % 3 = ${part}`

/** These questions are about parley's own rows, and not about published ones. Tables for reports follow by themselves. */
const ABOUT_PARLEY = ['freshness', 'coverage-of-a-month', 'withdrawn-this-month']

const files = questionFiles().filter(
  ({ name, sql }) =>
    name in RECOUNTS && !ABOUT_PARLEY.includes(name) && !/(record|deal)_conversations/.test(sql),
)
let demo: DemoWarehouse
let marked: Sqlite
let removed: Sqlite

beforeAll(async () => {
  demo = await demoWarehouse()
  marked = changedCopy(
    (table, where) => `UPDATE ${table} SET _deleted_at = '2026-06-30T12:00:00.000Z' WHERE ${where}`,
  )
  marked.exec(`UPDATE meetings SET access = 'withheld' WHERE ${third('id', 1)}`)
  removed = changedCopy((table, where) => `DELETE FROM ${table} WHERE ${where}`)
  removed.exec(`DELETE FROM meetings WHERE ${third('id', 1)}`)
  return () => {
    marked.close()
    removed.close()
  }
})

function changedCopy(statement: (table: string, where: string) => string): Sqlite {
  const path = join(mkdtempSync(join(tmpdir(), 'parley-questions-')), 'parley.db')
  copyFileSync(demo.file, path)
  const db = openWarehouse({ path })
  for (const [table, column] of Object.entries(DELETED)) {
    // Deleted rows, and rows that were withheld after their read, are missing from both.
    db.exec(`DELETE FROM ${table} WHERE _deleted_at IS NOT NULL`)
    if (table === 'meetings') db.exec("DELETE FROM meetings WHERE access = 'withheld'")
    db.exec(statement(table, third(column, 0)))
  }
  return db
}

describe.each(files)('$name', file => {
  const ask = (db: Sqlite, sql: string) => db.prepare(sql).all() as Expected[]

  test('the question does not count deleted or withheld rows', () => {
    const sql = withParameters(file, RECOUNTS[file.name]?.parameters ?? {})
    const answer = ask(marked, sql)
    expect(answer).toEqual(ask(removed, sql))
    expect(answer.length).toBeGreaterThan(0)
  })
})
