import { existsSync, rmSync } from 'node:fs'
import { systemClock } from '../clock.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import type { Sqlite } from '../store/open.ts'

const MADE_FOR = 'made_for'
const DEMO = 'demo'
const MODE = 0o600

/**
 * An empty warehouse, marked as the demo's.
 * @throws StopError (64) on a file that is not marked so: it is somebody's own and stays
 */
export async function makeRoom(file: string): Promise<void> {
  const [{ openDatabase }, { lockDatabase }, { openStoreInTurn }] = await Promise.all([
    import('../store/open.ts'),
    import('../store/lock.ts'),
    import('../store/store.ts'),
  ])
  const clock = systemClock()
  if (existsSync(file)) {
    const db = openDatabase({ path: file, readonly: true })
    const isOurs = isEmptyOrMarked(db)
    db.close()
    if (!isOurs) throw notOurs(file)
    lockDatabase(file, clock, MODE).release()
    for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
  }
  const store = await openStoreInTurn({ path: file, mode: MODE, command: DEMO, pid: process.pid, clock })
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
