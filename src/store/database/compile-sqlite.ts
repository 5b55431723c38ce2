import { spawnSync } from 'node:child_process'
import { loadLibrary, sqlitePackage } from './sqlite.ts'

/**
 * A program for `npm run build`: compiles SQLite's native module if this Node cannot load it. npm runs no install
 * scripts here (`.npmrc`), or Node 22 and newer would compile the package that only Node 20 needs.
 */
const name = sqlitePackage(process.versions.node)
try {
  loadLibrary(name)
} catch {
  process.stderr.write(
    `Compiling SQLite (${name}) for Node ${process.versions.node}, which takes about a minute\n`,
  )
  // Otherwise its install script would fetch a binary for which the lock file has no digest.
  const fromSource = 'npm_config_build_from_source=true'
  const { status } = spawnSync('env', [fromSource, 'npm', 'rebuild', name, '--ignore-scripts=false'], {
    stdio: 'inherit',
  })
  if (status !== 0)
    throw new Error(`Cannot compile ${name}, which needs Python 3, make and a C++ compiler (see above)`)
}
