import { openSqlite } from '../../src/store/database/sqlite.ts'
import { migrate } from '../../src/store/migrations/migrate.ts'

/** Upgrades a database by migrations that may call `die()`, which ends the process as kill -9 does. */
const [path = '', migrations = ''] = process.argv.slice(2)
const db = openSqlite(path)
db.function('die', { directOnly: false }, () => {
  process.kill(process.pid, 'SIGKILL')
  // The signal arrives before the next statement, but perhaps after the end of this one.
  for (;;);
})
migrate(db, path, { migrations })
db.close()
process.stdout.write('upgraded\n')
