import { mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { openFolder } from '../../src/publish/storage/folder.ts'
import { emptyFolder, parley, parleyWithSmallFiles } from '../cli/parley.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { metadataOf, publicationsIn, rowsOf } from './lake-reader.ts'
import { filesIn, newLake, publishTo, serve } from './publishing.ts'

/** A warehouse with one member, and a target with its publication. */
async function published() {
  const store = temporaryStore()
  store.put('members', [{ id: 'm', name: 'M' }])
  const lake = await newLake()
  await publishTo(store.path, lake)
  const run = (...args: string[]) =>
    parley(['publish', lake.folder, '--location', lake.url, '--database', store.path, ...args])
  return { store, lake, run }
}

describe('parley publish', () => {
  test('the command publishes to a new folder, and reports it as JSON', async () => {
    const { store } = await published()
    const folder = join(emptyFolder(), 'new', 'lake')
    const url = await serve(folder)
    const ended = await parley([
      'publish',
      folder,
      '--location',
      `${url}/`,
      '--database',
      store.path,
      '--json',
    ])
    expect(ended).toMatchObject({ status: EXIT_STATUS.done, stderr: '' })
    expect(JSON.parse(ended.stdout)).toMatchObject({ target: folder, publication: 1 })
    expect(await rowsOf({ folder, url }, 'members')).toMatchObject([{ id: 'm', name: 'M' }])
  })

  test('an impossible publication fails with a hint', async () => {
    const { run, store } = await published()
    const cwd = emptyFolder()
    mkdirSync(join(cwd, 'foreign'))
    writeFileSync(join(cwd, 'foreign', 'thesis.txt'), '')
    const cases: [args: string[], status: number, says: RegExp][] = [
      [
        ['foreign'],
        EXIT_STATUS.usage,
        /foreign has files that parley publish did not write\nhint: .*not changed/,
      ],
      [
        ['foreign/thesis.txt'],
        EXIT_STATUS.usage,
        /thesis.txt is not a folder\nhint: Name a folder that is empty/,
      ],
      [
        ['c#/lake'],
        EXIT_STATUS.usage,
        /Readers cannot find files below .*\/c#\/lake: they take # for the end of a path\nhint: Publish to a folder without /,
      ],
      [
        ['out', '--location', 'https://lake.example/?out'],
        EXIT_STATUS.usage,
        /below https:\/\/lake.example\/\?out: they take \? for .*\nhint: Name by --location /,
      ],
      [['/proc/out'], EXIT_STATUS.databaseUnavailable, /Cannot publish to \/proc\/out: /],
      [
        ['out', '--database', 'none.db'],
        EXIT_STATUS.databaseUnavailable,
        /There is no warehouse at .*none.db yet/,
      ],
    ]
    for (const [args, status, says] of cases) {
      const ended = await parley(['publish', '--database', store.path, ...args], { cwd })
      expect(ended, args.join(' ')).toMatchObject({ status, stdout: '' })
      expect(ended.stderr).toMatch(says)
    }
    expect(filesIn(cwd)).toEqual(['foreign/thesis.txt'])
    for (const keep of ['0', '1001'])
      expect(await run('--keep', keep)).toMatchObject({ status: EXIT_STATUS.usage, stdout: '' })
  })

  test('a folder with # in its path is a target where readers find it elsewhere, or if it was one before', async () => {
    const { store } = await published()
    const cwd = emptyFolder()
    const run = (...args: string[]) => parley(['publish', ...args, '--database', store.path], { cwd })
    expect(await run('c#/lake', '--location', 's3://bucket/lake')).toMatchObject({ status: EXIT_STATUS.done })
    const folder = join(cwd, 'c#', 'earlier')
    await publishTo(store.path, { folder, url: `file://${folder}` })
    expect(await run('c#/earlier')).toMatchObject({ status: EXIT_STATUS.done })
  })

  test('a table that is left out loses its rows, an unknown one is refused, and each attempt has a row', async () => {
    const { run, lake, store } = await published()
    expect(await rowsOf(lake, 'members')).toHaveLength(1)
    const ended = await run('--tables', 'teams,crm_deal')
    expect(ended).toMatchObject({ status: EXIT_STATUS.done })
    expect(ended.stderr).toMatch(/^parley: "crm_deal" was not published, since .* no such table yet: .*\n$/)
    expect(await rowsOf(lake, 'members')).toEqual([])
    const refused = await run('--tables', 'membrs')
    expect(refused).toMatchObject({ status: EXIT_STATUS.usage, stdout: '' })
    expect(refused.stderr).toContain('Unknown table "membrs"\nhint: Did you mean members?')
    expect(await run()).toMatchObject({ status: EXIT_STATUS.done })
    expect(await rowsOf(lake, 'members')).toMatchObject([{ name: 'M' }])
    expect(store.all('SELECT target, publication, error_code FROM sync_publications ORDER BY id')).toEqual([
      { target: lake.folder, publication: expect.any(Number), error_code: null },
      { target: lake.folder, publication: null, error_code: 'unknown-table' },
      { target: lake.folder, publication: expect.any(Number), error_code: null },
    ])
  })

  test('tables of the settings that do not exist are refused with their source', async () => {
    const store = temporaryStore()
    const refused = async (tables: string, ...args: string[]) => {
      const around = { cwd: emptyFolder(), env: { PARLEY_PUBLISH_TABLES: tables } }
      const ended = await parley(['publish', ...args, '--database', store.path], around)
      expect(ended).toMatchObject({ status: EXIT_STATUS.settings, stdout: '' })
      return ended.stderr
    }
    const says = 'in environment PARLEY_PUBLISH_TABLES: there is no table "membrs"; did you mean members?'
    expect(await refused('membrs', 'lake')).toContain(`publish.tables is ["membrs"] ${says}`)
    expect(await refused('membrs')).toContain(says)
    store.db.exec("UPDATE sync_resources SET first_complete_at = '2026-01-01' WHERE resource = 'crm_objects'")
    expect(await refused('crm_nope', 'lake')).toContain(
      'Invalid settings: publish.tables in environment PARLEY_PUBLISH_TABLES: Unknown table "crm_nope"\nhint: ',
    )
  })

  test.each([
    ['publish', 'lake'],
    ['publish', 'verify', 'lake'],
  ])('%s %s takes only a URL as --location', async (...args) => {
    const { status, stderr } = await parley([...args, '--location', 'not a url'])
    expect(status).toBe(EXIT_STATUS.usage)
    expect(stderr).toContain("argument 'not a url' is invalid. Expected a URL with a scheme, such as")
  })

  test('a ClickHouse database as the target is refused with how ClickHouse reads the tables', async () => {
    const target = 'clickhouse://db.example.com:8123/parley'
    const says = /parley no longer writes tables of a ClickHouse database: .*icebergLocal.*engines\.md/
    const named = await parley(['publish', target])
    expect(named).toMatchObject({ status: EXIT_STATUS.usage, stdout: '' })
    expect(named.stderr).toMatch(says)
    const set = await parley(['publish'], { env: { PARLEY_PUBLISH_TARGET: target } })
    expect(set).toMatchObject({ status: EXIT_STATUS.settings, stdout: '' })
    expect(set.stderr).toMatch(says)
  })

  test('without a target the command needs one in the settings, whose location it uses too', async () => {
    const store = temporaryStore()
    const cwd = emptyFolder()
    const none = await parley(['publish', '--database', store.path], { cwd })
    expect(none).toMatchObject({ status: EXIT_STATUS.usage, stdout: '' })
    expect(none.stderr).toContain('parley publish needs a target')
    const env = {
      PARLEY_PUBLISH_TARGET: 'lake',
      PARLEY_PUBLISH_LOCATION: 'https://lake.example.com',
      PARLEY_PUBLISH_TABLES: 'members',
    }
    for (const target of ['lake', 'other'])
      expect(await parley(['publish', target, '--database', store.path], { cwd, env })).toMatchObject({
        stderr: '',
      })
    const locationIn = (folder: string) =>
      JSON.parse(readFileSync(join(cwd, folder, 'members', 'metadata', 'v1.metadata.json'), 'utf8')).location
    expect(locationIn('lake')).toBe('https://lake.example.com/members')
    expect(locationIn('other')).toBe(`file://${join(cwd, 'other')}/members`)
  })

  test('the target of another warehouse is refused and not changed', async () => {
    const { run, lake } = await published()
    const before = filesIn(lake.folder)
    const { status, stderr } = await run('--database', temporaryStore().path)
    expect(status).toBe(EXIT_STATUS.usage)
    expect(stderr).toContain('has the tables of another warehouse')
    expect(filesIn(lake.folder)).toEqual(before)
  })

  test('a target that has lost its publications is begun again, and the command says so', async () => {
    const { lake, run } = await published()
    await run()
    await run()
    rmSync(lake.folder, { recursive: true })
    const ended = await run()
    expect(ended).toMatchObject({ status: EXIT_STATUS.done })
    expect(ended.stdout).toContain(`Publication 1 in ${lake.folder} `)
    expect(ended.stderr).toMatch(
      /^parley: .* is empty; the last one known is publication 3 of .*Z\. Its publications begin again with number 1\.\n$/,
    )
    expect(await run()).toMatchObject({ status: EXIT_STATUS.done, stderr: '' })
  })

  test('a second publication at the same time is refused, and the message names the process of the first', async () => {
    const { run, lake } = await published()
    const held = openFolder({ path: lake.folder, location: lake.url, mode: 0o600, clock: systemClock() })
    const { status, stderr } = await run()
    held.close()
    expect(status).toBe(EXIT_STATUS.unfinished)
    expect(stderr).toContain(`${lake.folder} is in use by process ${process.pid} (node`)
    expect(stderr).toContain('hint: Wait until it ends, or choose another folder.')
  })

  test('a full disk is reported as such, and the last publication stays readable', async () => {
    const { store, lake } = await published()
    store.db
      .prepare('UPDATE members SET name = ?')
      .run(Array.from({ length: 60_000 }, (_, index) => `${index * 7919}`).join('-'))
    const args = ['publish', lake.folder, '--location', lake.url, '--database', store.path]
    const { status, stderr } = await parleyWithSmallFiles(100, args, { cwd: emptyFolder() })
    expect(status).toBe(EXIT_STATUS.databaseUnavailable)
    expect(stderr).toMatch(
      /^parley: Cannot publish to .*: a file would exceed the size limit .* \(EFBIG\)\nhint: Raise the limit/,
    )
    const [newest] = await publicationsIn(lake)
    expect(await rowsOf(lake, 'members', newest?.snapshots['members'])).toMatchObject([{ name: 'M' }])
    expect(await parley(args)).toMatchObject({ status: EXIT_STATUS.done })
  })

  test('a damaged target is refused with the table that is damaged', async () => {
    const { run, lake } = await published()
    const metadata = await metadataOf(lake, 'members')
    const list = join(lake.folder, (metadata.snapshots[0]?.['manifest-list'] ?? '').slice(lake.url.length))
    const bytes = readFileSync(list)
    for (const damage of [
      () => truncateSync(list, bytes.length - 1),
      () => truncateSync(list, 0),
      () => rmSync(list),
    ]) {
      damage()
      const { status, stderr } = await run()
      expect(status).toBe(EXIT_STATUS.databaseUnavailable)
      expect(stderr).toContain(`The table members in ${lake.folder} is damaged: `)
    }
    writeFileSync(list, bytes)
    writeFileSync(join(lake.folder, 'teams/metadata/v1.metadata.json'), '{"secret')
    const { status, stderr } = await run()
    expect(status).toBe(EXIT_STATUS.databaseUnavailable)
    expect(stderr).toContain('The table teams')
    expect(stderr).not.toContain('secret')
  })

  test('a moved target is refused with its earlier location, and goes on with it', async () => {
    const { store, lake, run } = await published()
    const other = ['publish', lake.folder, '--database', store.path]
    const before = filesIn(lake.folder)
    const { status, stderr } = await parley(other)
    expect(status).toBe(EXIT_STATUS.usage)
    expect(stderr).toContain(`name their files below ${lake.url}, not file://${lake.folder}`)
    expect(stderr).toContain(`--location ${lake.url}`)
    expect(filesIn(lake.folder)).toEqual(before)
    expect(await run()).toMatchObject({ status: EXIT_STATUS.done })
  })

  test('without --location, files are named by the path of the folder as it is', async () => {
    const { store } = await published()
    const folder = join(emptyFolder(), 'a lake ü')
    expect(await parley(['publish', folder, '--database', store.path])).toMatchObject({
      status: EXIT_STATUS.done,
    })
    const { location } = JSON.parse(readFileSync(join(folder, 'members/metadata/v1.metadata.json'), 'utf8'))
    expect(location).toBe(`file://${folder}/members`)
  })
})

test('a stopped publication ends between tables, and the last one stays readable', async () => {
  const { store, lake } = await published()
  store.exec("UPDATE members SET name = 'changed'")
  const controller = new AbortController()
  const stopped = publishTo(store.path, lake, {
    signal: controller.signal,
    onRows: () => controller.abort(new Error('stopped')),
  })
  await expect(stopped).rejects.toThrow('stopped')
  expect(await rowsOf(lake, 'members')).toMatchObject([{ name: 'M' }])
  await publishTo(store.path, lake)
  expect(await rowsOf(lake, 'members')).toMatchObject([{ name: 'changed' }])
})
