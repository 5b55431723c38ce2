import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openDatabase } from '../../src/store/file/open.ts'
import {
  type PublicationAttempt,
  readPublications,
  recordAttempt,
} from '../../src/store/sync/publications.ts'
import { newFolder, temporaryStore } from './temporary-store.ts'

const COMPLETE: PublicationAttempt = {
  target: '/lake',
  publication: 1,
  started_at: '2026-01-01T00:00:00.000Z',
  finished_at: '2026-01-01T00:00:01.000Z',
  published_at: '2026-01-01T00:00:00.000Z',
  complete_as_of: null,
  fresh_as_of: null,
  tables_changed: 2,
  rows: 10,
  files_written: 2,
  files_removed: 0,
  bytes_written: 99,
  error_code: null,
  error: null,
}
const FAILED: PublicationAttempt = { ...COMPLETE, publication: null, error_code: 'x', error: 'why' }
const at = (attempt: PublicationAttempt, day: string, target = '/lake'): PublicationAttempt => ({
  ...attempt,
  target,
  started_at: `${day}T00:00:00.000Z`,
  finished_at: `${day}T00:00:01.000Z`,
})

test('the history of a target has its newest complete publication and the failures after it', () => {
  const { db, publications } = temporaryStore()
  expect(readPublications(db, '/lake')).toEqual({ last: undefined, failures: undefined })
  publications.add(at(FAILED, '2026-01-01'))
  publications.add(at(COMPLETE, '2026-01-02'))
  publications.add(at(FAILED, '2026-01-03', '/other'))
  expect(readPublications(db, '/lake')).toMatchObject({
    last: { started_at: '2026-01-02T00:00:00.000Z' },
    failures: undefined,
  })
  publications.add(at(FAILED, '2026-01-04'))
  publications.add(at(FAILED, '2026-01-05'))
  expect(readPublications(db, '/lake')).toMatchObject({
    last: { started_at: '2026-01-02T00:00:00.000Z' },
    failures: {
      since: '2026-01-04T00:00:00.000Z',
      times: 2,
      newest: { started_at: '2026-01-05T00:00:00.000Z' },
    },
  })
})

test('a complete publication whose earlier files could not be removed is the last one, with its error', () => {
  const { db, publications } = temporaryStore()
  const uncleaned = { ...COMPLETE, error_code: 'publish-denied', error: 'Access is denied' }
  publications.add(at(COMPLETE, '2026-01-01'))
  publications.add(at(FAILED, '2026-01-02'))
  publications.add(at(uncleaned, '2026-01-03'))
  expect(readPublications(db, '/lake')).toMatchObject({
    last: { started_at: '2026-01-03T00:00:00.000Z', error: 'Access is denied' },
    failures: undefined,
  })
})

test('another process records its attempt at once, or not at all while one writes', () => {
  const { path, db, column } = temporaryStore()
  const reader = openDatabase({ path, readonly: true })
  recordAttempt(reader, COMPLETE)
  db.exec('BEGIN IMMEDIATE')
  recordAttempt(reader, COMPLETE)
  db.exec('ROLLBACK')
  reader.close()
  expect(column('SELECT target FROM sync_publications')).toEqual(['/lake'])
})

test('a copy of a warehouse is published without a row in it', () => {
  const { db } = temporaryStore()
  const copy = `${newFolder()}/copy.db`
  writeFileSync(copy, '')
  db.exec(`VACUUM INTO '${copy}'`)
  const reader = openDatabase({ path: copy, readonly: true })
  recordAttempt(reader, COMPLETE)
  expect(reader.prepare('SELECT count(*) FROM sync_publications').pluck().get()).toBe(0)
  reader.close()
})
