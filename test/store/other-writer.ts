import { systemClock } from '../../src/base/clock.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'

/** Another program that writes a database: it holds the write lock again and again until it is killed. */
const [path = '', holdMs = '0', pauseMs = '0'] = process.argv.slice(2)
const clock = systemClock()
const db = openSqlite(path, { timeout: 5000 })
process.stdout.write('begun\n')
for (;;) {
  db.exec('BEGIN IMMEDIATE')
  await clock.sleep(Number(holdMs))
  db.exec('ROLLBACK')
  await clock.sleep(Number(pauseMs))
}
