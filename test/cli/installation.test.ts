import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/errors.ts'
import { sqlitePackage } from '../../src/store/database/sqlite.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { emptyFolder, parley } from './parley.ts'
import { placeFor } from './workspace.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MODULES = join(ROOT, 'node_modules')
const sqlite = sqlitePackage(process.versions.node)
const NOWHERE = { url: 'http://127.0.0.1:9', apiKey: 'demo-key', workspaceId: 'demo-workspace' }

/** A copy of SQLite's package whose binaries cannot be loaded. */
function replaceBinaries(path: string): void {
  cpSync(join(MODULES, sqlite), path, { recursive: true })
  for (const name of readdirSync(path, { recursive: true, encoding: 'utf8' }))
    if (name.endsWith('.node')) writeFileSync(join(path, name), 'for another Node')
}

/** A copy of this checkout's program. */
function installation(): string {
  const folder = emptyFolder()
  for (const name of ['dist', 'drizzle', 'package.json'])
    cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

test.concurrent.for<[what: string, path: string, commands: string[], replace?: (path: string) => void]>([
  [
    'the folder of migrations is missing',
    'drizzle',
    [
      'backfill',
      'backfill --plan',
      'daemon --listen off',
      'status',
      'snapshot copy.db',
      'export parquet out',
    ],
  ],
  [
    'the journal of migrations is a folder',
    'drizzle/meta/_journal.json',
    ['status'],
    path => mkdirSync(path),
  ],
  ['the folder of questions is missing', 'drizzle/questions', ['backfill']],
])(
  'when %s, the installation is named as broken and not the database',
  async ([, path, commands, replace]) => {
    const folder = installation()
    const place = placeFor(NOWHERE)
    openWarehouse({ path: join(place.cwd, 'other.db') }).close()
    rmSync(join(folder, path), { recursive: true })
    replace?.(join(folder, path))
    for (const command of commands) {
      const database = command.startsWith('backfill') && !command.includes('--plan') ? 'new.db' : 'other.db'
      const { status, stderr } = await parley([...command.split(' '), '--database', database], {
        ...place,
        program: join(folder, 'dist', 'cli.js'),
      })
      expect(status, command).toBe(EXIT_STATUS.fault)
      expect(stderr, command).toMatch(
        /^parley: The installation of parley is broken: cannot read \S+\/drizzle\/\S+ \((ENOENT|EISDIR)\)\nhint: Install parley again/m,
      )
      expect(stderr, command).not.toContain('Cannot use the database')
    }
    expect(existsSync(join(place.cwd, 'copy.db'))).toBe(false)
    expect(readdirSync(place.cwd)).toContain('other.db')
  },
)

test.concurrent.for<[what: string, replace: (path: string) => void]>([
  ['is missing', () => undefined],
  ['was built for another Node', path => replaceBinaries(path)],
])(
  'when the native module of SQLite %s, every command says in one sentence what to run',
  async ([, replace]) => {
    const folder = installation()
    const modules = join(folder, 'node_modules')
    rmSync(modules)
    mkdirSync(modules)
    for (const name of readdirSync(MODULES))
      if (name !== sqlite) symlinkSync(join(MODULES, name), join(modules, name))
    replace(join(modules, sqlite))
    const place = placeFor(NOWHERE)
    openWarehouse({ path: join(place.cwd, 'parley.db') }).close()
    for (const command of [
      'doctor',
      'status',
      'backfill',
      'daemon',
      'search word',
      'snapshot copy.db',
      'demo',
    ]) {
      const { status, stdout, stderr } = await parley(command.split(' '), {
        ...place,
        program: join(folder, 'dist', 'cli.js'),
      })
      const said = stdout + stderr
      expect(said, command).toMatch(/: SQLite's native module \(better-sqlite3-\d+\) is missing or was built/)
      expect(said, command).toContain(` Run npm ci && npm run build in ${folder}.\n`)
      expect(said, command).not.toMatch(/internal error/i)
      expect(status, command).toBe(EXIT_STATUS.settings)
    }
  },
)

test.for([
  ['20.19.0', 'better-sqlite3-12'],
  ['22.0.0', 'better-sqlite3-13'],
  ['24.21.0', 'better-sqlite3-13'],
  ['26.10.0', 'better-sqlite3-13'],
])('Node %s loads %s', ([version = '', name]) => {
  expect(sqlitePackage(version)).toBe(name)
})
