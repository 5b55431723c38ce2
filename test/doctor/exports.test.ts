import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exportFindings } from '../../src/doctor/exports.ts'
import { findingsOf } from '../../src/doctor/finding.ts'
import { noteExport, readExportNotes } from '../../src/store/sync/export-notes.ts'
import { META } from '../../src/store/sync/meta.ts'
import { emptyFolder, parley } from '../cli/parley.ts'
import { temporaryStore } from '../store/temporary-store.ts'

test('an export from before the last purge is named until the folder is exported again or gone', async () => {
  const store = temporaryStore()
  const folder = join(emptyFolder(), 'an export')
  const run = (...args: string[]) => parley(['export', 'parquet', folder, '--database', store.path, ...args])
  const marks = () => exportFindings(store.db, findingsOf('exports')).map(({ mark }) => mark)
  const purge = (at: string) => store.state.setMeta(META.purgedAt, at)
  expect(marks()).toEqual([])

  purge('2026-01-01T00:00:00.000Z')
  await run()
  expect(readExportNotes(store.db)).toEqual([{ folder, purgedAt: '2026-01-01T00:00:00.000Z' }])
  expect(marks()).toEqual(['ok'])

  purge('2026-01-02T00:00:00.000Z')
  const [finding] = exportFindings(store.db, findingsOf('exports'))
  expect(finding).toMatchObject({ mark: 'warning', found: expect.stringContaining(folder) })
  expect(finding?.hint).toContain(`parley export parquet '${folder}'`)

  // An export of some tables leaves the files of others as they were.
  expect(JSON.parse((await run('--tables', 'members', '--json')).stdout)).toMatchObject({
    purged_at: '2026-01-01T00:00:00.000Z',
  })
  expect(marks()).toEqual(['warning'])
  await run()
  expect(marks()).toEqual(['ok'])

  purge('2026-01-03T00:00:00.000Z')
  rmSync(folder, { recursive: true })
  expect(marks()).toEqual([])
})

test('an export leaves no note where the warehouse cannot be written', () => {
  const note = { folder: '/data/lake', purgedAt: '' }
  expect(noteExport(join(emptyFolder(), 'none.db'), note)).toBe(false)
  const store = temporaryStore()
  store.db.exec('BEGIN IMMEDIATE')
  expect(noteExport(store.path, note)).toBe(false)
  store.db.exec('ROLLBACK')
  expect(readExportNotes(store.db)).toEqual([])
})
