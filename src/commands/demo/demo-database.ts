import { existsSync, rmSync } from 'node:fs'
import { systemClock } from '../../base/clock.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import type { Sqlite } from '../../store/database/sqlite-types.ts'
import { readMeta } from '../../store/sync/meta.ts'

const MADE_FOR = 'made_for'
const DEMO = 'demo'
const MODE = 0o600

/**
 * Creates an empty warehouse that is marked as created by a demo. Replaces a file with that mark, or an empty database.
 * @throws StopError 64 when the file is any other database; the file is not changed
 */
export async function createDemoDatabase(file: string): Promise<void> {
  const [{ readDatabase }, { lockDatabase }, { openStoreInTurn }] = await Promise.all([
    import('../../store/file/open.ts'),
    import('../../store/file/lock.ts'),
    import('../../store/store.ts'),
  ])
  const clock = systemClock()
  if (existsSync(file)) {
    if (!readDatabase({ path: file }, isEmptyOrMarked)) throw notDemoFile(file)
    lockDatabase(file, clock, MODE).release()
    for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
  }
  const store = await openStoreInTurn({ path: file, mode: MODE, command: DEMO, pid: process.pid, clock })
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
