import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import type { Settings } from '../../src/config/loaded-settings.ts'
import { makeSnapshots } from '../../src/daemon/snapshots.ts'
import { readStatusReport } from '../../src/store/status/report.ts'
import { META } from '../../src/store/sync/meta.ts'
import { type VirtualClock, virtualClock } from '../api/virtual-clock.ts'
import { placeFor, workspace } from '../cli/workspace.ts'
import { owners } from '../store/snapshot-copies.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { until } from '../support/until.ts'
import { loaded, runCommand, startDaemon } from './cli-daemon.ts'

const PROGRAM = new URL('../../dist/store/snapshot/worker.js', import.meta.url)
const NOW = Date.parse('2026-03-04T10:30:00.000Z')
const HOUR = 3_600_000

interface Chosen {
  every?: string | undefined
  keep?: number
  /** Leaves out the snapshot of ten o'clock. */
  isFirst?: boolean
}

/** The snapshot work of a daemon on a new warehouse at half past ten. */
async function dutyWith({ every, keep = 7, isFirst = false }: Chosen) {
  const store = temporaryStore()
  const lines: { level: string; msg: string; error?: { code?: string } }[] = []
  const log = await createLog({
    level: 'info',
    stream: { write: (text: string) => lines.push(JSON.parse(text)) },
  })
  const even = virtualClock(NOW)
  let setBy = 0
  let sleepers = 0
  let hasEnded = false
  const clock: VirtualClock = {
    ...even,
    now: () => even.now() + setBy,
    async sleep(ms, signal) {
      sleepers += 1
      await even.sleep(ms, signal)
      sleepers -= 1
    },
    /** Resolves when it waits for the next snapshot, or for none. */
    async advance(ms) {
      await until(() => hasEnded || sleepers > 0, Boolean)
      await even.advance(ms)
    },
  }
  const stop = new AbortController()
  const settings: Pick<Settings, 'database' | 'snapshot'> = {
    database: { path: store.path, mode: 0o600 },
    snapshot: { every, keep, folder: undefined },
  }
  let isMaintained = true
  const isMaintenanceDue = () => !isMaintained
  const parts = {
    store,
    clock,
    log,
    settings,
    signal: stop.signal,
    isMaintenanceDue,
    program: PROGRAM,
    owners,
  }
  const own = `${store.path}.snapshots`
  const ofTen = nameAt('100000')
  if (!isFirst) {
    mkdirSync(own)
    writeFileSync(join(own, ofTen), '')
  }
  const told = () => lines.map(({ msg }) => msg).filter(msg => msg !== REMOVED)
  return {
    store,
    clock,
    setClock(to: number) {
      setBy = to - even.now()
    },
    setMaintained(done: boolean) {
      isMaintained = done
    },
    lines,
    folder: own,
    kept: () =>
      existsSync(own) ? readdirSync(own).filter(name => name.endsWith('.db') && name !== ofTen) : [],
    report: () => readStatusReport({ path: store.path, now: clock.now(), db: store.db }).snapshot,
    start() {
      const ended = makeSnapshots(parts).finally(() => {
        hasEnded = true
      })
      onTestFinished(() => {
        stop.abort()
        return ended
      })
    },
    said: (count: number) => until(told, found => found.length >= count),
  }
}

const nameAt = (time: string) => `parley-2026-03-04T${time}Z.db`
const MADE = 'A snapshot was created'
const REMOVED = 'An old snapshot was removed: snapshot.keep is reached'
const FAILED = 'A snapshot failed; the next one is made as scheduled'

describe('the snapshots of a daemon', () => {
  test('the daemon makes the first snapshot at once, and the next ones by the calendar, each once', async () => {
    const { clock, start, said, kept, report } = await dutyWith({ every: '0 * * * *', isFirst: true })
    expect(report()).toBe(null)
    start()
    await clock.advance(0)
    expect(await said(1)).toEqual([MADE])
    await clock.advance(HOUR / 2 - 1)
    expect(kept()).toEqual([nameAt('103000')])
    await clock.advance(1)
    expect(await said(2)).toEqual([MADE, MADE])
    await clock.advance(HOUR)
    expect(await said(3)).toEqual([MADE, MADE, MADE])
    expect(kept()).toEqual([nameAt('103000'), nameAt('110000'), nameAt('120000')])
    expect(report()).toMatchObject({ made_at: '2026-03-04T12:00:00.000Z', failed_at: null, reason: null })
  })

  test('the daemon makes one snapshot at once when some were missed, and keeps the newest of them', async () => {
    const { clock, folder, start, said, kept } = await dutyWith({
      every: '0 * * * *',
      keep: 2,
      isFirst: true,
    })
    mkdirSync(folder)
    for (const time of ['040000', '050000']) writeFileSync(join(folder, nameAt(time)), '')
    start()
    await clock.advance(0)
    expect(await said(1)).toEqual([MADE])
    expect(kept()).toEqual([nameAt('050000'), nameAt('103000')])
  })

  test('a missed snapshot waits for the maintenance that is due', async () => {
    const { clock, setMaintained, start, said, kept } = await dutyWith({ every: '0 * * * *', isFirst: true })
    setMaintained(false)
    start()
    await clock.advance(20 * 60_000)
    expect(kept()).toEqual([])
    setMaintained(true)
    await clock.advance(1000)
    expect(await said(1)).toEqual([MADE])
    expect(kept()).toEqual([nameAt('105001')])
  })

  test('a snapshot waits at most an hour for maintenance that does not finish, and the next ones are made as planned', async () => {
    const { clock, setMaintained, start, said, kept } = await dutyWith({ every: '0 * * * *' })
    setMaintained(false)
    start()
    await clock.advance(HOUR)
    expect(kept()).toEqual([])
    await clock.advance(60_000)
    expect(await said(1)).toEqual([MADE])
    await clock.advance(HOUR)
    expect(await said(2)).toEqual([MADE, MADE])
    expect(kept()).toHaveLength(2)
    expect(kept()[1]).toBe(nameAt('120000'))
  })

  test('a snapshot waits again for the maintenance of the next night', async () => {
    const { clock, setMaintained, start, said, kept } = await dutyWith({ every: '0 * * * *' })
    setMaintained(false)
    start()
    await clock.advance(HOUR + 60_000)
    expect(await said(1)).toEqual([MADE])
    setMaintained(true)
    await clock.advance(60_000)
    setMaintained(false)
    await clock.advance(HOUR / 2)
    expect(kept()).toHaveLength(1)
  })

  test('a failed snapshot is a warning and shows in the status, and the next one is made', async () => {
    const { clock, lines, folder, start, said, kept, report } = await dutyWith({ every: '0 * * * *' })
    mkdirSync(join(folder, nameAt('110000')), { recursive: true })
    start()
    await clock.advance(HOUR / 2)
    expect(await said(1)).toEqual([FAILED])
    expect(lines[0]).toMatchObject({ level: 'warn', error: { code: 'snapshot-refused' } })
    const failed = await until(report, found => found !== null)
    expect(failed).toMatchObject({ made_at: null, failed_at: '2026-03-04T11:00:00.000Z' })
    expect(failed?.reason).toContain('is a folder')
    await clock.advance(HOUR)
    expect(await said(2)).toEqual([FAILED, MADE])
    expect(kept()).toContain(nameAt('120000'))
    expect(await until(report, found => found?.failed_at === null)).toMatchObject({
      made_at: '2026-03-04T12:00:00.000Z',
      reason: null,
    })
  })

  test('a failed snapshot leaves the note of the last successful one', async () => {
    const { clock, folder, start, said, report } = await dutyWith({ every: '0 * * * *' })
    start()
    await clock.advance(HOUR / 2)
    await said(1)
    mkdirSync(join(folder, nameAt('120000')))
    await clock.advance(HOUR)
    expect(await said(2)).toEqual([MADE, FAILED])
    expect(await until(report, found => found?.failed_at !== null)).toMatchObject({
      made_at: '2026-03-04T11:00:00.000Z',
      failed_at: '2026-03-04T12:00:00.000Z',
    })
  })

  test.each([
    ['back by years', '2020-06-01T10:30', [30, 60], ['2020-06-01T110000', '2020-06-01T120000']],
    ['forward by a day', '2026-03-05T10:30', [1, 29], ['2026-03-05T103100', '2026-03-05T110000']],
  ] as const)(
    'a daemon whose clock is set %s makes snapshots by the new time',
    async (_, time, [first, second], names) => {
      const { clock, setClock, start, said, kept } = await dutyWith({ every: '0 * * * *' })
      start()
      await clock.advance(0)
      setClock(Date.parse(`${time}:00.000Z`))
      await clock.advance(first * 60_000)
      await said(1)
      await clock.advance(second * 60_000)
      expect(await said(2)).toEqual([MADE, MADE])
      expect(kept()).toEqual(names.map(name => `parley-${name}Z.db`))
    },
  )

  test('snapshots with a time in the future count as older ones', async () => {
    const { clock, folder, start, said, kept } = await dutyWith({
      every: '0 * * * *',
      keep: 2,
      isFirst: true,
    })
    mkdirSync(folder)
    for (const name of [nameAt('050000'), 'parley-2030-01-01T000000Z.db'])
      writeFileSync(join(folder, name), '')
    start()
    await clock.advance(0)
    expect(await said(1)).toEqual([MADE])
    expect(kept()).toEqual([nameAt('050000'), nameAt('103000')])
  })

  test('a daemon whose only snapshot has a time in the future makes one at once', async () => {
    const { clock, folder, start, said, kept } = await dutyWith({ every: '0 3 * * 0', isFirst: true })
    mkdirSync(folder)
    writeFileSync(join(folder, 'parley-2030-01-01T000000Z.db'), '')
    start()
    await clock.advance(0)
    expect(await said(1)).toEqual([MADE])
    expect(kept()).toContain(nameAt('103000'))
  })

  test('the result of the last snapshot is forgotten when snapshots are turned off', async () => {
    const { store, start, report } = await dutyWith({ every: undefined })
    const failed = {
      made_at: null,
      path: null,
      bytes: null,
      failed_at: '2026-03-04T04:00:00.000Z',
      reason: 'no',
    }
    store.state.setMeta(META.snapshots, JSON.stringify(failed))
    expect(report()).toEqual(failed)
    start()
    expect(await until(report, found => found === null)).toBe(null)
  })

  test.each([
    ['the daemon makes no snapshot without a calendar', undefined],
    ['the daemon makes no snapshot for a day that does not exist', '0 0 31 2 *'],
  ])('%s', async (_, every) => {
    const { clock, start, kept } = await dutyWith({ every })
    start()
    await clock.advance(40 * 24 * HOUR)
    expect(kept()).toEqual([])
  })
})

test('the daemon catches up on a missed snapshot, reports it, and continues to read meanwhile', async context => {
  const place = placeFor(await workspace(context, { now: 'real' }))
  mkdirSync(`${place.file}.snapshots`)
  writeFileSync(join(`${place.file}.snapshots`, 'parley-2020-01-01T000000Z.db'), '')
  const daemon = startDaemon(context, place, { PARLEY_SNAPSHOT_EVERY: 'weekly' })
  const line = await daemon.says(({ msg }) => msg === MADE)
  expect(line['path']).toMatch(/parley\.db\.snapshots\/parley-\d{4}-\d\d-\d\dT\d{6}Z\.db$/)
  await loaded(place.file)
  const status = await until(
    () => runCommand(place, ['status', '--json']),
    ({ stdout }) => stdout.includes('"made_at"'),
  )
  expect(status.stderr).toBe('')
  expect(JSON.parse(status.stdout).snapshot).toMatchObject({
    path: line['path'],
    bytes: line['bytes'],
    failed_at: null,
  })
  expect((await runCommand(place, ['status'])).stdout).toContain('The daemon took its last snapshot ')
  const metrics = (await daemon.ask('/metrics')).body
  expect(metrics).toMatch(/\nparley_snapshot_failed 0\n/)
  expect(metrics).toMatch(/\nparley_snapshot_age_seconds \d/)
})
