import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type BetterSqlite from 'better-sqlite3'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { INSTALLATION } from '../../base/installation.ts'
import type { Sqlite } from './sqlite-types.ts'

type Library = typeof BetterSqlite

/**
 * @returns the package with SQLite's native module. No version of it runs on every supported Node: better-sqlite3 12
 * aborts on Node 24.19 and newer, and 13 crashes on Node 20. Version 13 has its binaries in the package;
 * `node-20/install.js` compiles version 12.
 */
export function sqlitePackage(nodeVersion: string): string {
  return Number.parseInt(nodeVersion, 10) >= 22
    ? 'better-sqlite3'
    : join(INSTALLATION, 'src/store/database/node-20/node_modules/better-sqlite3')
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

function loadLibrary(name: string): Library {
  try {
    const loaded: Library = createRequire(import.meta.url)(name)
    // The package loads its native module only with the first connection, so one is opened here to find errors.
    new loaded(':memory:').close()
    return loaded
  } catch (error) {
    const { arch, platform, versions } = process
    throw new StopError(
      `SQLite's native module is missing or was built for another Node than ${versions.node} on ${platform}-${arch}`,
      {
        code: 'native-module',
        hint: existsSync(join(INSTALLATION, 'package-lock.json'))
          ? `Run npm ci && npm run build in ${INSTALLATION}.`
          : `Install parley again with this Node, as it was installed in ${INSTALLATION}.`,
        cause: error,
        exitStatus: EXIT_STATUS.settings,
      },
    )
  }
}
