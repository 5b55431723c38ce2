import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { createLog } from '../../src/base/log.ts'
import type { Environment, Settings } from '../../src/config/loaded-settings.ts'
import { type PublicationDuty, publishRegularly } from '../../src/daemon/publish-regularly.ts'
import { readStatusReport } from '../../src/store/status/report.ts'
import { type VirtualClock, virtualClock } from '../api/virtual-clock.ts'
import { emptyFolder } from '../cli/parley.ts'
import { placeFor, workspace } from '../cli/workspace.ts'
import { ACCESS, BUCKET, fakeS3 } from '../publish/s3/fake-s3.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { until } from '../support/until.ts'
import { column, loaded, runCommand, seen, startDaemon } from './cli-daemon.ts'
import { PUBLISH_DEFAULTS } from './publish-settings.ts'

const PROGRAM = new URL('../../dist/publish/publish-worker.js', import.meta.url)
const NOW = Date.parse('2026-03-04T10:30:00.000Z')
const MINUTE = 60_000

const PUBLISH: Settings['publish'] = { ...PUBLISH_DEFAULTS, tables: ['members', 'teams'] }

/** The publications of a daemon on a new warehouse at half past ten. */
async function dutyWith(publish: Partial<Settings['publish']>, program = PROGRAM, env: Environment = {}) {
  const store = temporaryStore()
  store.put('members', [{ id: 'm', name: 'M' }])
  const lines: { level: string; msg: string; until?: string; error?: { code?: string } }[] = []
  const stream = { write: (text: string) => lines.push(JSON.parse(text)) }
  const log = await createLog({ level: 'info', stream })
  const even = virtualClock(NOW)
  let setBy = 0
  let sleepers = 0
  const clock: VirtualClock = {
    ...even,
    now: () => even.now() + setBy,
    async sleep(ms, signal) {
      sleepers += 1
      await even.sleep(ms, signal)
      sleepers -= 1
    },
  }
  const stop = new AbortController()
  const duty: PublicationDuty = {
    store,
    clock,
    log,
    settings: {
      database: { path: store.path, mode: 0o600 },
      publish: { ...PUBLISH, ...publish },
      proxies: {},
    },
    env,
    version: '1.2.3',
    signal: stop.signal,
    program,
  }
  return {
    store,
    lines,
    setClock(to: number) {
      setBy = to - even.now()
    },
    report: () => readStatusReport({ path: store.path, now: clock.now(), db: store.db }).publication,
    rows: () => store.all('SELECT * FROM sync_publications ORDER BY id'),
    /** Moves the clock by a time once the duty waits, and returns once it waits again. */
    async advance(ms: number) {
      const isWaiting = () => until(() => sleepers > 0, Boolean)
      await isWaiting()
      await even.advance(ms)
      await isWaiting()
    },
    start() {
      const ended = publishRegularly(duty)
      onTestFinished(() => {
        stop.abort()
        return ended
      })
      return ended
    },
  }
}

test('the daemon publishes at once and after each interval, and the status has the newest publication', async () => {
  const target = join(emptyFolder(), 'lake')
  const { start, advance, rows, report, store } = await dutyWith({ target })
  expect(report()).toBe(null)
  void start()
  await advance(0)
  expect(rows()).toMatchObject([
    { target, publication: 1, started_at: '2026-03-04T10:30:00.000Z', tables_changed: 2, files_removed: 0 },
  ])
  store.put('members', [{ id: 'm', name: 'Max' }])
  await advance(5 * MINUTE - 1)
  expect(rows()).toHaveLength(1)
  await advance(1)
  expect(rows()).toMatchObject([{ publication: 1 }, { publication: 2, tables_changed: 2, error_code: null }])
  await advance(2 * MINUTE)
  expect(report()).toMatchObject({
    target,
    is_late: false,
    running_since: null,
    due_at: '2026-03-04T10:40:00.000Z',
    last: { publication: 2 },
    failing: null,
  })
})

test('a target that refuses is a warning, is tried again after growing waits, and becomes late', async () => {
  const target = join(emptyFolder(), 'lake')
  writeFileSync(target, '')
  const { start, advance, rows, report, lines } = await dutyWith({ target })
  void start()
  await advance(0)
  await advance(MINUTE / 2)
  expect(lines).toMatchObject([
    { level: 'warn', msg: 'A publication failed; it is tried again', until: '2026-03-04T10:30:30.000Z' },
    { level: 'warn', error: { code: 'publish-no-folder' }, until: '2026-03-04T10:31:30.000Z' },
  ])
  expect(report()).toMatchObject({
    is_late: false,
    last: null,
    failing: { times: 2, since: '2026-03-04T10:30:00.000Z', code: 'publish-no-folder' },
  })
  expect(report()?.failing?.reason).toContain('is not a folder. Name a folder')
  while (rows().length < 8) await advance(MINUTE)
  expect(report()?.is_late).toBe(true)
  rmSync(target)
  while (rows().length < 9) await advance(MINUTE)
  expect(report()).toMatchObject({ is_late: false, last: { publication: 1 }, failing: null })
  expect(lines.at(-1)).toMatchObject({ level: 'info', msg: 'The warehouse was published', target })
})

test.each<[string, Settings['publish']['every']]>([
  ['an interval', { by: 'interval', ms: 15_000 }],
  ['the calendar', { by: 'calendar', pattern: '0 * * * *' }],
])('a daemon whose clock is set back publishes by %s of the new time', async (_, every) => {
  const target = join(emptyFolder(), 'lake')
  const { start, advance, setClock, rows, report } = await dutyWith({ target, every })
  void start()
  await advance(0)
  setClock(NOW - 365 * 24 * 60 * MINUTE)
  await advance(MINUTE)
  expect(rows()).toMatchObject([
    { publication: 1 },
    { publication: 2, started_at: expect.stringMatching(/^2025-03-04T10:31:/) },
  ])
  expect(report()).toMatchObject({ is_late: false, last: { publication: 2 }, failing: null })
  expect(report()?.late_at).toMatch(/^2025-03-04T1/)
})

test('a target that fails after the clock was set back is tried again, and becomes late by the new time', async () => {
  const target = join(emptyFolder(), 'lake')
  const { start, advance, setClock, rows, report } = await dutyWith({ target })
  writeFileSync(target, '')
  void start()
  await advance(0)
  setClock(NOW - 365 * 24 * 60 * MINUTE)
  await advance(MINUTE)
  expect(rows()).toHaveLength(2)
  for (let minutes = 0; minutes < 70; minutes += 1) await advance(MINUTE)
  expect(report()).toMatchObject({ is_late: true, failing: { code: 'publish-no-folder' } })
})

test('a target in S3 without credentials is a warning and a reason in the status that name the settings', async () => {
  const { start, advance, report, lines } = await dutyWith({ target: `s3://${BUCKET}/lake` })
  void start()
  await advance(0)
  const missing = 'publish.s3_access_key_id and publish.s3_secret_access_key are not set'
  expect(lines).toMatchObject([
    {
      level: 'warn',
      error: {
        message: expect.stringContaining(missing),
        hint: expect.stringContaining('publish.s3_secret_access_key_file'),
      },
    },
  ])
  expect(report()?.failing?.reason).toContain(missing)
})

test('a folder that has lost its publications is not begun again by the daemon, which goes on once they are back', async () => {
  const target = join(emptyFolder(), 'lake')
  const { start, advance, rows, report } = await dutyWith({ target })
  void start()
  await advance(0)
  const away = join(emptyFolder(), 'away')
  renameSync(target, away)
  await advance(5 * MINUTE)
  expect(rows()).toMatchObject([{ publication: 1 }, { publication: null, error_code: 'publish-emptied' }])
  expect(report()?.failing?.reason).toMatch(
    / is empty; .* publication 1 of .* parley publish .*\/lake begins/,
  )
  expect(existsSync(target)).toBe(false)
  renameSync(away, target)
  await advance(MINUTE)
  expect(rows().at(-1)).toMatchObject({ publication: 2, error_code: null })
})

test('a child process that dies is a failure with a hint', async () => {
  const program = new URL('none.js', PROGRAM)
  const { start, advance, rows } = await dutyWith({ target: join(emptyFolder(), 'lake') }, program)
  void start()
  await advance(0)
  expect(rows()).toMatchObject([{ error_code: 'publish-cut-off' }])
})

test('the status no longer has a publication once the daemon does not publish', async () => {
  const { start, report, store } = await dutyWith({ every: 'never', target: '/data/lake' })
  store.atomically(() => store.state.setMeta('publishing', '{"target":"/data/lake"}'))
  await start()
  expect(report()).toBe(null)
})

test('a daemon that may not remove files of a bucket publishes on, and warns each time', async () => {
  const fake = await fakeS3()
  const target = { target: `s3://${BUCKET}/lake`, s3Endpoint: fake.url, s3Region: ACCESS.region, keep: 1 }
  const env = { AWS_ACCESS_KEY_ID: ACCESS.id, AWS_SECRET_ACCESS_KEY: ACCESS.secret }
  const { start, advance, rows, report, lines, store } = await dutyWith(target, PROGRAM, env)
  void start()
  await advance(0)
  store.put('members', [{ id: 'm', name: 'N' }])
  fake.fault = ({ method }) => (method === 'DELETE' ? { status: 403, code: 'AccessDenied' } : undefined)
  await advance(5 * MINUTE)
  expect(rows()).toMatchObject([{ publication: 1 }, { publication: 2, error_code: 'publish-denied' }])
  expect(report()).toMatchObject({
    due_at: '2026-03-04T10:40:00.000Z',
    last: { publication: 2, error: expect.stringContaining('Publication 2 is complete; ') },
    failing: null,
  })
  expect(lines.slice(1)).toMatchObject([
    {
      level: 'warn',
      msg: 'Files of earlier publications could not be removed',
      error: { code: 'publish-denied' },
    },
  ])
})

test('a daemon publishes while it reads, and parley publish without a target goes on there', async context => {
  const place = placeFor(await workspace(context, { now: 'real' }))
  const target = join(place.cwd, 'lake')
  Object.assign(place.env, { PARLEY_PUBLISH_TARGET: 'lake', PARLEY_PUBLISH_TABLES: 'members,sync_status' })
  const daemon = startDaemon(context, place, { PARLEY_PUBLISH_EVERY: '1s' })
  await loaded(place.file)
  const published = 'SELECT max(publication) >= 2 FROM sync_publications'
  expect(await seen(place.file, 1, published)).toBe(1)
  const { publication } = JSON.parse((await daemon.ask('/status')).body)
  expect(publication).toMatchObject({ target, is_late: false, failing: null })
  expect((await daemon.ask('/metrics')).body).toMatch(/\nparley_publication_lag_seconds \d/)
  expect((await daemon.ask('/')).body).toContain('<dt>Publication</dt>')
  daemon.signal('SIGTERM')
  expect((await daemon.ended).status).toBe(EXIT_STATUS.done)
  const byHand = await runCommand(place, ['publish', '--json'])
  expect(byHand).toMatchObject({ status: EXIT_STATUS.done, stderr: '' })
  const { target: to, publication: number, tables } = JSON.parse(byHand.stdout)
  expect(to).toBe(target)
  expect(tables.map(({ folder }: { folder: string }) => folder).sort()).toEqual([
    'members',
    'publications',
    'sync_status',
  ])
  const last = 'SELECT publication FROM sync_publications ORDER BY id DESC LIMIT 1'
  expect(column(place.file, last)).toEqual([number])
  expect((await runCommand(place, ['status'])).stdout).toContain(
    `Published to ${target}: publication ${number}, `,
  )
})

test('a target that does not answer delays neither the sync nor the end of the daemon', async context => {
  const fake = await fakeS3()
  fake.fault = () => 'hang'
  const place = placeFor(await workspace(context, { now: 'real' }))
  const daemon = startDaemon(context, place, {
    PARLEY_PUBLISH_TARGET: `s3://${BUCKET}/lake`,
    PARLEY_PUBLISH_S3_ENDPOINT: fake.url,
    PARLEY_PUBLISH_S3_REGION: ACCESS.region,
    PARLEY_PUBLISH_S3_ACCESS_KEY_ID: ACCESS.id,
    PARLEY_PUBLISH_S3_SECRET_ACCESS_KEY: ACCESS.secret,
  })
  await until(() => fake.calls.length, Boolean)
  await loaded(place.file)
  const { publication } = JSON.parse((await daemon.ask('/status')).body)
  expect(publication).toMatchObject({ last: null, running_since: expect.any(String) })
  daemon.signal('SIGTERM')
  expect((await daemon.ended).status).toBe(EXIT_STATUS.done)
  expect(JSON.stringify(daemon.lines())).not.toContain(ACCESS.secret)
  expect(column(place.file, 'SELECT count(*) FROM sync_publications')).toEqual([0])
})

test('a publication to a bucket uses the credentials of the environment of the daemon', async () => {
  const fake = await fakeS3()
  const target = { target: `s3://${BUCKET}/lake`, s3Endpoint: fake.url, s3Region: ACCESS.region }
  const env = { AWS_ACCESS_KEY_ID: ACCESS.id, AWS_SECRET_ACCESS_KEY: ACCESS.secret }
  const { start, advance, rows } = await dutyWith(target, PROGRAM, env)
  void start()
  await advance(0)
  expect(rows()).toMatchObject([{ publication: 1, error: null }])
})
