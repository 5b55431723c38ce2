import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/**
 * npm runs this program when it installs parley. On Node 20 it installs and compiles the version of SQLite's native module
 * that only Node 20 needs, from the lock file in this folder. On newer Nodes it does nothing; `../sqlite.ts` says why.
 */
const folder = fileURLToPath(new URL('.', import.meta.url))
const module = `${folder}node_modules/better-sqlite3`
if (process.version.startsWith('v20.') && !isUsable()) {
  process.stderr.write('Compiling SQLite for Node 20, which takes about a minute\n')
  // The package's install script would fetch a binary for which the lock file has no digest.
  npm(['ci', '--ignore-scripts'], folder)
  npm(['run', 'build-release', '--silent'], module)
}

function isUsable() {
  try {
    const library = createRequire(import.meta.url)(module)
    new library(':memory:').close()
    return true
  } catch {
    return false
  }
}

/** @param {string[]} args @param {string} cwd */
function npm(args, cwd) {
  // `npm install --global` sets these variables. With them, this npm would also install into the global folder.
  const { npm_config_global: _, npm_config_location: __, ...env } = process.env
  if (spawnSync('npm', args, { cwd, env, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0) return
  process.stderr.write(
    'SQLite for Node 20 needs Python 3, make and a C++ compiler. Node 22 and newer need none of them.\n',
  )
  process.exit(1)
}
