import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Programs of Debian's packages, unpacked into a folder: neither root nor an installation is needed. */

export interface Unpacked {
  /** With `usr`, `etc` and so on. */
  root: string
  /** For LD_LIBRARY_PATH. */
  libraries: string
}

/** Where they stay for later runs. The temporary folder of the tests is removed after each run. */
const FOLDER = '/var/tmp'

/** @throws Error when they cannot be had */
export function debianPackages(...names: readonly string[]): Unpacked {
  const root = join(FOLDER, `parley-debian-${names.join('-')}`)
  if (!existsSync(root) && !unpack(names, root)) {
    // The lists of a new machine may be missing or too old.
    spawnSync('apt-get', ['update'])
    if (!unpack(names, root)) throw new Error(`apt-get cannot download ${names.join(' and ')}`)
  }
  const libraries = ['usr/lib', 'lib'].map(folder => join(root, folder, 'x86_64-linux-gnu'))
  return { root, libraries: libraries.join(':') }
}

function unpack(names: readonly string[], root: string): boolean {
  const work = mkdtempSync(`${root}-`)
  const archives = join(work, 'archives')
  mkdirSync(join(archives, 'partial'), { recursive: true })
  const downloaded = spawnSync(
    'apt-get',
    [
      ...['install', '--yes', '--download-only', '--no-install-recommends'],
      ...['-o', 'Debug::NoLocking=1', '-o', `Dir::Cache::archives=${archives}`],
      ...names,
    ],
    { encoding: 'utf8' },
  )
  const files = readdirSync(archives).filter(name => name.endsWith('.deb'))
  const unpacked = files.map(file => spawnSync('dpkg-deb', ['-x', join(archives, file), join(work, 'root')]))
  const isDone = downloaded.status === 0 && files.length > 0 && unpacked.every(({ status }) => status === 0)
  if (isDone) renameSync(join(work, 'root'), root)
  rmSync(work, { recursive: true, force: true })
  return isDone
}
