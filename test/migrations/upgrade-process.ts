import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { migrate } from '../../src/store/migrations/migrate.ts'

/**
 * Upgrades a database by migrations that may call `die()`, which ends the process as kill -9 does. With a number, it dies
 * at that prepared statement, and with `at-removal` when it would remove the copy that failed half-way. Prints how many
 * prepared statements it has run.
 */
const [path = '', migrations = '', last = ''] = process.argv.slice(2)
const db = openSqlite(path)
db.pragma('foreign_keys = OFF')
const die = () => {
  process.kill(process.pid, 'SIGKILL')
  // The signal arrives before the next statement, but perhaps after the end of this one.
  for (;;);
}
db.function('die', { directOnly: false }, die)

if (last === 'at-removal') {
  fs.rmSync = die
  syncBuiltinESMExports()
}

let statements = 0
const prototype = Object.getPrototypeOf(db.prepare('SELECT 1'))
for (const name of ['run', 'get', 'all']) {
  const original = prototype[name]
  prototype[name] = function (...args: unknown[]) {
    statements += 1
    if (statements === Number(last)) die()
    return original.apply(this, args)
  }
}
migrate(db, path, { migrations })
db.close()
process.stdout.write(`${statements}\n`)
