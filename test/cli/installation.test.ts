import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/errors.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { emptyFolder, parley } from './parley.ts'
import { placeFor } from './workspace.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const NOWHERE = { url: 'http://127.0.0.1:9', apiKey: 'demo-key', workspaceId: 'demo-workspace' }

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
