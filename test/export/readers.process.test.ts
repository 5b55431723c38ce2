import { chmodSync, mkdirSync, readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { placeFor, workspace } from '../cli/workspace.ts'
import { column, loaded, startDaemon } from '../daemon/cli-daemon.ts'
import { asNobody, giveToNobody, openToReaders } from '../store/other-user.ts'
import { newFolder, openAt } from '../store/temporary-store.ts'
import { emptyTarget, exportTo, manifestOf } from './exporting.ts'

/** Exports as a user who may read the warehouse and its folder but not write them. Returns the number of e-mails. */
async function exportedMessages(database: string): Promise<number | undefined> {
  const target = emptyTarget()
  giveToNobody(target)
  await asNobody(() => exportTo(database, target, { tables: ['messages'] }))
  return manifestOf(target).tables[0]?.rows
}

test('a user with read access exports the warehouse while the daemon runs, after it was killed and after it stopped', async context => {
  const place = placeFor(await workspace(context))
  openToReaders(place.file)
  const around = { ...place, env: { ...place.env, PARLEY_DATABASE_MODE: '0644' } }
  const stored = () => column(place.file, 'SELECT count(*) FROM messages')[0]
  const killed = startDaemon(context, around)
  await loaded(place.file)
  expect(await exportedMessages(place.file)).toBe(stored())
  killed.signal('SIGKILL')
  await killed.ended
  // Only the WAL has the last commits.
  expect(readFileSync(`${place.file}-wal`).length).toBeGreaterThan(0)
  expect(await exportedMessages(place.file)).toBe(stored())
  const stopped = startDaemon(context, around)
  await loaded(place.file)
  stopped.signal('SIGTERM')
  await stopped.ended
  expect(await exportedMessages(place.file)).toBe(stored())
})

/** An empty warehouse that every user may read, and a folder for its export that belongs to the user nobody. */
function forNobody(): { path: string; target: string } {
  const path = `${newFolder()}/parley.db`
  openToReaders(path)
  openAt(path, 0o644).close()
  const target = emptyTarget()
  giveToNobody(target)
  return { path, target }
}

test('the error for an unwritable folder names that folder and not the warehouse', async () => {
  const { path, target } = forNobody()
  chmodSync(target, 0o500)
  await expect(asNobody(() => exportTo(path, target))).rejects.toMatchObject({
    code: 'export-unwritable',
    exitStatus: 73,
    message: expect.stringContaining(`${target}: no permission to write there`),
  })
})

test('a closed folder of another user within the folder of the export does no harm', async () => {
  const { path, target } = forNobody()
  await asNobody(() => exportTo(path, target))
  const closed = `${target}/private`
  mkdirSync(closed, { mode: 0o000 })
  onTestFinished(() => chmodSync(closed, 0o700))
  const { files_removed } = await asNobody(() => exportTo(path, target))
  expect(files_removed).toBe(0)
})
