import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type BetterSqlite from 'better-sqlite3'
import { EXIT_STATUS, StopError } from '../../errors.ts'
import type { Sqlite } from './sqlite-types.ts'

type Library = typeof BetterSqlite

/**
 * The package with SQLite's native module. No version runs on every supported Node: version 12 aborts on Node 24.19
 * and newer, and version 13 crashes on Node 20. Version 13 has its binaries in the package; version 12 is compiled.
 */
export function sqlitePackage(nodeVersion: string): string {
  return Number.parseInt(nodeVersion, 10) >= 22 ? 'better-sqlite3-13' : 'better-sqlite3-12'
}

let library: Library | undefined

/**
 * Opens a connection. All of the program's connections are opened here.
 * @throws the error of SQLite, or a StopError (78) when the native module is missing or built for another Node
 */
export function openSqlite(file: string, options: BetterSqlite.Options = {}): Sqlite {
  library ??= loadLibrary(sqlitePackage(process.versions.node))
  return new library(file, options)
}

/** Opens a database in memory as well: the package loads its native module with the first connection. */
export function loadLibrary(name: string): Library {
  try {
    const loaded: Library = createRequire(import.meta.url)(name)
    new loaded(':memory:').close()
    return loaded
  } catch (error) {
    const folder = resolve(fileURLToPath(import.meta.url), '../../../..')
    const { arch, platform, versions } = process
    throw new StopError(
      `SQLite's native module (${name}) is missing or was built for another Node than ${versions.node} on ${platform}-${arch}`,
      {
        code: 'native-module',
        hint: `Run npm ci && npm run build in ${folder}.`,
        cause: error,
        exitStatus: EXIT_STATUS.settings,
      },
    )
  }
}
