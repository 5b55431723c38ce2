import { afterEach, expect, test } from 'vitest'
import { startTrial, TINY, type Trial } from '../support/trial.ts'
import { query } from './changed-tables.ts'

let trial: Trial

afterEach(() => trial.close())

const SINCE = '2026-01-01T00:00:00Z'
const TABLES = ['activities', 'message_copies', 'messages', 'meetings', 'access_logs', 'crm_records', 'teams']

const rows = (table: string, where: string): unknown =>
  query(trial.database, `SELECT count(*) AS count FROM ${table} WHERE ${where}`)[0]?.['count']

const nothingIsTombstoned = (): void => {
  const gone = TABLES.filter(table => rows(table, '_deleted_at IS NOT NULL') !== 0)
  expect(gone).toEqual([])
}

test('--since limits what is loaded, and a later run without it loads the rest', async () => {
  trial = await startTrial(TINY)
  expect(await trial.backfill('--since', SINCE)).toMatchObject({ status: 0 })
  expect(await trial.differences({ since: SINCE })).toEqual([])
  const unbounded = trial.tap.requests.filter(
    path => /^\/v2\/(messages|activities)\?/.test(path) && !/_from=|ids=/.test(path),
  )
  expect(unbounded).toEqual([])
  nothingIsTombstoned()

  expect(await trial.backfill()).toMatchObject({ status: 0 })
  expect(await trial.differences()).toEqual([])
  nothingIsTombstoned()
})

test('--since on a complete warehouse removes nothing', async () => {
  trial = await startTrial(TINY)
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  expect(await trial.backfill('--since', SINCE)).toMatchObject({ status: 0 })
  expect(await trial.differences()).toEqual([])
  nothingIsTombstoned()
})

test('--only reads the named resources and their parents, and --skip all but the named ones', async () => {
  trial = await startTrial(TINY)
  expect(await trial.backfill('--only', 'teams')).toMatchObject({ status: 0 })
  expect(trial.tap.requests.filter(path => !path.startsWith('/v1/teams'))).toEqual([])
  expect(await trial.differences({ tables: ['teams', 'team_members'] })).toEqual([])

  expect(await trial.backfill('--only', 'transcripts')).toMatchObject({ status: 0 })
  expect(await trial.differences({ tables: ['activities', 'meetings', 'transcript_entries'] })).toEqual([])
  expect(rows('crm_records', '1')).toBe(0)

  expect(await trial.backfill('--skip', 'message_bodies')).toMatchObject({ status: 0 })
  expect(trial.tap.requests.filter(path => path.startsWith('/v2/messages/'))).toEqual([])
  expect(rows('messages', "text_state = 'pending'")).toBe(rows('messages', '1'))

  expect(await trial.backfill()).toMatchObject({ status: 0 })
  expect(await trial.differences()).toEqual([])
})
