import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { sqlitePackage } from '../../src/store/database/sqlite.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { emptyFolder, parleyProcess } from './parley.ts'
import { placeFor } from './workspace.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MODULES = join(ROOT, 'node_modules')
const FOR_NODE_20 = 'src/store/database/node-20/node_modules'
const NOWHERE = { url: 'http://127.0.0.1:9', apiKey: 'demo-key', workspaceId: 'demo-workspace' }

/** A copy of SQLite's package whose binaries cannot be loaded. */
function replaceBinaries(from: string, path: string): void {
  cpSync(from, path, { recursive: true })
  for (const name of readdirSync(path, { recursive: true, encoding: 'utf8' }))
    if (name.endsWith('.node')) writeFileSync(join(path, name), 'for another Node')
}

/** A copy of this checkout's program, with all that it needs but SQLite's package. */
function installationWithoutSqlite(): string {
  const folder = emptyFolder()
  for (const name of ['dist', 'drizzle', 'package.json', 'package-lock.json'])
    cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  mkdirSync(join(folder, 'node_modules'))
  for (const name of readdirSync(MODULES))
    if (name !== 'better-sqlite3') symlinkSync(join(MODULES, name), join(folder, 'node_modules', name))
  return folder
}

function installation(): string {
  const folder = installationWithoutSqlite()
  for (const modules of ['node_modules', FOR_NODE_20]) {
    const from = join(ROOT, modules, 'better-sqlite3')
    if (!existsSync(from)) continue
    mkdirSync(join(folder, modules), { recursive: true })
    symlinkSync(from, join(folder, modules, 'better-sqlite3'))
  }
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
      const { status, stderr } = await parleyProcess([...command.split(' '), '--database', database], {
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

test.concurrent.for<[what: string, isBroken: boolean, files: string[], remedy: string]>([
  ['is missing', false, [], 'Run npm ci && npm run build in FOLDER.'],
  ['was built for another Node', true, [], 'Run npm ci && npm run build in FOLDER.'],
  [
    'is missing from an installed package',
    false,
    ['package-lock.json'],
    'Install parley again with this Node, as it was installed in FOLDER.',
  ],
])(
  'when the native module of SQLite %s, every command says in one sentence what to run',
  async ([, isBroken, without, remedy]) => {
    const folder = installationWithoutSqlite()
    for (const name of without) rmSync(join(folder, name))
    for (const modules of ['node_modules', FOR_NODE_20]) {
      const from = join(ROOT, modules, 'better-sqlite3')
      if (isBroken && existsSync(from)) replaceBinaries(from, join(folder, modules, 'better-sqlite3'))
    }
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
      const { status, stdout, stderr } = await parleyProcess(command.split(' '), {
        ...place,
        program: join(folder, 'dist', 'cli.js'),
      })
      const said = stdout + stderr
      expect(said, command).toMatch(/: SQLite's native module is missing or was built for another Node than /)
      expect(said, command).toContain(` ${remedy.replace('FOLDER', folder)}\n`)
      expect(said, command).not.toMatch(/internal error/i)
      expect(status, command).toBe(EXIT_STATUS.settings)
    }
  },
)

test.for([
  ['20.19.0', FOR_NODE_20],
  ['22.0.0', ''],
  ['24.21.0', ''],
  ['26.10.0', ''],
])('Node %s loads the version of SQLite that runs on it', ([version = '', folder = '']) => {
  expect(sqlitePackage(version)).toBe(folder === '' ? 'better-sqlite3' : join(ROOT, folder, 'better-sqlite3'))
})
