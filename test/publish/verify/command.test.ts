import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../../src/base/errors.ts'
import { emptyFolder, parley } from '../../cli/parley.ts'
import { temporaryStore } from '../../store/temporary-store.ts'
import { publishTo } from '../publishing.ts'
import { dataFiles, emptyLake, eraseMember, NOW } from './verifying.ts'

test('the command names each fault with what to do, and its status says whether publishing again mends it', async () => {
  const store = temporaryStore()
  const lake = emptyLake()
  store.put('members', [{ id: 'm', name: 'Rumpelstilzchen' }], { now: NOW })
  store.put('teams', [{ id: 't', name: 'T', member_ids: [] }], { now: NOW })
  await publishTo(store.path, lake)
  const verify = (...args: string[]) =>
    parley(['publish', 'verify', lake.folder, '--database', store.path, ...args])

  const clean = await verify('--json')
  expect(clean).toMatchObject({ status: EXIT_STATUS.done, stderr: '' })
  expect(JSON.parse(clean.stdout)).toMatchObject({
    target: lake.folder,
    publication: 1,
    compared: true,
    faults: [],
  })

  writeFileSync(join(lake.folder, 'members/data/1-left.parquet'), 'PAR1')
  const left = await verify()
  expect(left).toMatchObject({ status: EXIT_STATUS.done })
  expect(left.stdout).toContain('No publication names 1 other file: a publication that was interrupted has')

  eraseMember(store, 'm')
  const erased = await verify()
  expect(erased).toMatchObject({ status: EXIT_STATUS.unfinished, stderr: '' })
  const [member = ''] = dataFiles(lake, 'members')
  expect(erased.stdout).toContain(
    `members, part [], ${member}: 1 row with content that was purged.\n  hint: Run parley publish ${lake.folder}: `,
  )
  expect(erased.stdout).not.toContain('Rumpelstilzchen')

  const [team = ''] = dataFiles(lake, 'teams')
  rmSync(join(lake.folder, team))
  const damaged = await verify('--database', join(emptyFolder(), 'none.db'))
  expect(damaged).toMatchObject({ status: EXIT_STATUS.databaseUnavailable, stderr: '' })
  expect(damaged.stdout).toContain(`teams, part [], ${team}: The file is missing.`)
  expect(damaged.stdout).toMatch(/The warehouse was not compared, .*: there is no .*none\.db\./)
})

test('a table that is gone, or only its metadata, is a fault until the next publication writes it again', async () => {
  const store = temporaryStore()
  const lake = emptyLake()
  store.put('members', [{ id: 'm', name: 'M' }], { now: NOW })
  await publishTo(store.path, lake)
  rmSync(join(lake.folder, 'members'), { recursive: true })
  rmSync(join(lake.folder, 'teams/metadata'), { recursive: true })
  const verify = () => parley(['publish', 'verify', lake.folder, '--database', store.path, '--json'])
  const gone = await verify()
  expect(gone.status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(JSON.parse(gone.stdout).faults).toEqual(
    ['members', 'teams'].map(table => ({
      table,
      part: null,
      file: `${table}/metadata`,
      kind: 'table',
      message: 'Publication 1 shows this table, and the target has no metadata of it',
      hint: `Restore the folder, or run parley publish ${lake.folder}: it writes the table again, without its earlier publications.`,
    })),
  )
  await publishTo(store.path, lake)
  expect(await verify()).toMatchObject({ status: EXIT_STATUS.done })
})

test('verifying counts a file that parley did not name, and a later publication removes it', async () => {
  const store = temporaryStore()
  const lake = emptyLake()
  store.put('members', [{ id: 'm', name: 'M' }], { now: NOW })
  await publishTo(store.path, lake)
  const foreign = join(lake.folder, 'members/data/foo.parquet')
  writeFileSync(foreign, 'x')
  const verified = async () =>
    (await parley(['publish', 'verify', lake.folder, '--database', store.path])).stdout
  expect(await verified()).toMatch(
    /No publication names 1 other file: .* another program .* Later publications remove what was left/,
  )
  await publishTo(store.path, lake)
  expect(existsSync(foreign)).toBe(false)
  expect(await verified()).not.toContain('No publication names')
})

test('a lost table publications is damage until the next publication writes it again', async () => {
  const store = temporaryStore()
  const lake = emptyLake()
  store.put('members', [{ id: 'm', name: 'M' }], { now: NOW })
  await publishTo(store.path, lake)
  const verify = () => parley(['publish', 'verify', lake.folder, '--database', store.path])
  for (const lost of ['publications', 'publications/metadata']) {
    rmSync(join(lake.folder, lost), { recursive: true })
    const gone = await verify()
    expect(gone).toMatchObject({ status: EXIT_STATUS.databaseUnavailable, stdout: '' })
    expect(gone.stderr).toMatch(
      /^parley: .* has \d+ tables, and no table publications.*\nhint: Restore the folder, or run parley publish .*: it writes the table again/,
    )
    await publishTo(store.path, lake)
    expect(await verify()).toMatchObject({ status: EXIT_STATUS.done })
  }
})

test('a target that cannot be verified is refused with a hint and not created', async () => {
  const cwd = emptyFolder()
  const cases: [target: string, says: RegExp][] = [
    ['none', /There is no folder .*none\nhint: Name the folder of a publication/],
    ['.', /has files that parley publish did not write|has no complete publication/],
  ]
  for (const [target, says] of cases) {
    const ended = await parley(['publish', 'verify', target, '--database', temporaryStore().path], { cwd })
    expect(ended).toMatchObject({ status: EXIT_STATUS.usage, stdout: '' })
    expect(ended.stderr).toMatch(says)
  }
  expect((await parley(['publish', 'verify'])).status).toBe(EXIT_STATUS.usage)
  expect((await parley(['publish', 'verify', '--help'])).stdout).toContain('parley publish verify')
})
