import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync, symlinkSync, writeFileSync, writeSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { parley } from './parley.ts'
import { backfilled, type Place, placeFor } from './workspace.ts'

const NOWHERE = { url: 'http://127.0.0.1:9', apiKey: 'demo-key', workspaceId: 'demo-workspace' }

/** Every command that opens the database, except `parley doctor`, which goes on. */
const COMMANDS = [
  'backfill',
  'backfill --plan',
  'daemon --listen off',
  'status',
  'search anything',
  'resync members',
  'accept-deletions members',
  'snapshot copy.db',
  'restore other.db',
  'schema',
  'export parquet out',
]

const UNUSABLE: readonly [what: string, path: string, says: string, create: (folder: string) => void][] = [
  [
    'below a loop of symbolic links',
    'loop/parley.db',
    'its path has a loop of symbolic links (ELOOP)',
    folder => symlinkSync('loop', join(folder, 'loop')),
  ],
  [
    'below a file',
    'file/parley.db',
    'a part of its path is a file, not a folder (ENOTDIR)',
    folder => writeFileSync(join(folder, 'file'), ''),
  ],
  [
    'of a folder',
    'folder',
    'it is a folder, not a file (EISDIR)',
    folder => mkdirSync(join(folder, 'folder')),
  ],
  ['of a device', '/dev/null', 'it is a device, a pipe or a socket, not a file (EFTYPE)', () => undefined],
  [
    'of a named pipe',
    'pipe',
    'it is a device, a pipe or a socket, not a file (EFTYPE)',
    folder => execFileSync('mkfifo', [join(folder, 'pipe')]),
  ],
]

test.concurrent.for(UNUSABLE)(
  'every command names a database path %s, ends with 73 and creates nothing',
  async ([, path, says, create]) => {
    const place = placeFor(NOWHERE)
    create(place.cwd)
    openWarehouse({ path: join(place.cwd, 'other.db') }).close()
    const before = readdirSync(place.cwd)
    for (const command of COMMANDS) {
      const ended = await parley([...command.split(' '), '--database', path], place)
      expect(ended, command).toMatchObject({ status: EXIT_STATUS.databaseUnavailable, stdout: '' })
      expect(ended.stderr, command).toContain(
        `parley: Cannot use the database ${resolve(place.cwd, path)}: ${says}\nhint: `,
      )
    }
    expect(readdirSync(place.cwd)).toEqual(before)
  },
)

/** Overwrites the first page of a table. */
function damageTable({ file }: Place, table: string): void {
  const db = openSqlite(file)
  db.pragma('wal_checkpoint(TRUNCATE)')
  const size = Number(db.pragma('page_size', { simple: true }))
  const page = Number(db.prepare('SELECT rootpage FROM sqlite_master WHERE name = ?').pluck().get(table) ?? 0)
  db.close()
  const handle = openSync(file, 'r+')
  writeSync(handle, Buffer.alloc(size, 0xa5), 0, size, (page - 1) * size)
  closeSync(handle)
}

test.concurrent.for(['sync_meta', 'sync_resources'])(
  'a plan names a database whose table %s is damaged, and ends with 73',
  async table => {
    const place = placeFor(NOWHERE)
    openWarehouse({ path: place.file }).close()
    damageTable(place, table)
    const { status, stderr } = await parley(['backfill', '--plan'], place)
    expect(status).toBe(EXIT_STATUS.databaseUnavailable)
    expect(stderr).toContain(
      `parley: Cannot use the database ${place.file}: it is damaged (SQLITE_CORRUPT)\nhint: Stop the daemon if it runs. `,
    )
  },
)

test('status says what to do about a damaged database as the backfill did that met it', async ctx => {
  const place = await backfilled(ctx)
  damageTable(place, 'activity_links')
  const ended = await parley(['backfill'], place)
  expect(ended.status).toBe(EXIT_STATUS.databaseUnavailable)
  const [, hint = 'none'] = /^hint: (.*)$/m.exec(ended.stderr) ?? []
  expect(hint).toContain('parley restore FILE')
  const { stdout } = await parley(['status'], place)
  expect(stdout).toContain(`it is damaged (SQLITE_CORRUPT). ${hint}\n`)
})
