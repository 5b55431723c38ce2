import { afterEach, expect, test } from 'vitest'
import { killAt, stopKilling } from '../support/trial.ts'
import { until } from '../support/until.ts'
import { type DaemonTrial, SCALES, startDaemonTrial } from './daemon-trial.ts'

let trial: DaemonTrial

afterEach(() => trial.close())

const here = (id: string | undefined): boolean =>
  trial.rows('SELECT 1 FROM message_copies WHERE id = ?', id ?? '').length > 0

const isTrue = (value: boolean): boolean => value

function loaded(): { messages: number; isComplete: boolean } {
  const [row] = trial.rows("SELECT rows_live, complete_as_of FROM sync_status WHERE resource = 'messages'")
  return { messages: Number(row?.['rows_live']), isComplete: row?.['complete_as_of'] != null }
}

test('an empty warehouse gets the newest messages first, and new ones while the history still loads', async () => {
  const limit = { kind: 'token-bucket', rate: 20, burst: 5 } as const
  trial = await startDaemonTrial({ messages: 6000, limit })
  const messages = await trial.simulator.truth('messages')
  const newest = [...messages]
    .sort((a, b) => Date.parse(String(b['received_at'])) - Date.parse(String(a['received_at'])))
    .slice(0, 50)
    .map(({ id }) => String(id))
  trial.go()
  await until(() => newest.every(here), isTrue)
  expect(loaded()).toMatchObject({ isComplete: false })
  expect(loaded().messages).toBeLessThan(messages.length / 4)

  const counts: number[] = []
  for (let round = 0; round < 3; round++) {
    const { ids } = await trial.simulator.change({ kind: 'publish', resource: 'messages', count: 2 })
    expect(await until(() => ids.every(here), isTrue)).toBe(true)
    expect(loaded()).toMatchObject({ isComplete: false })
    counts.push(loaded().messages)
  }
  expect(counts).toEqual([...counts].sort((a, b) => a - b))
  expect(new Set(counts).size).toBe(3)
})

test('the daemon continues after a complete backfill, and reads only new texts', async () => {
  // Real intervals, or each text would be due again within the test.
  trial = await startDaemonTrial({}, {}, SCALES.real)
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  const texts = () => trial.tap.requests.filter(path => /^\/v2\/messages\/[^/?]+/.test(path))
  const read = texts().length
  const { ids } = await trial.simulator.change({ kind: 'publish', resource: 'messages', count: 3 })
  trial.go()
  expect(await trial.convergence()).toEqual([])
  expect(texts().slice(read).sort()).toEqual(ids.map(id => `/v2/messages/${id}`).sort())
})

test('the daemon continues after a complete backfill, and finds what was changed and deleted since', async () => {
  trial = await startDaemonTrial()
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  await trial.simulator.change({ kind: 'edit', resource: 'meetings', count: 2 })
  await trial.simulator.change({ kind: 'delete', resource: 'crm_records', count: 1 })
  trial.go()
  expect(await trial.convergence()).toEqual([])
})

test('the daemon continues after a backfill that was killed', async () => {
  trial = await startDaemonTrial()
  const backfill = trial.start()
  killAt(trial, backfill, { number: 90, phase: 'request' })
  expect(await backfill.ended).toMatchObject({ status: null })
  stopKilling(trial)
  await trial.simulator.change({ kind: 'delete', resource: 'messages', count: 3 })
  await trial.simulator.change({ kind: 'publishLate', resource: 'activities', count: 3 })
  trial.go()
  expect(await trial.convergence()).toEqual([])
})

test('a backfill continues after a daemon, whether that had finished or not', async () => {
  trial = await startDaemonTrial()
  trial.go()
  await trial.kill({ number: 60, phase: 'answer' })
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  expect(await trial.differences()).toEqual([])
  trial.go()
  // Every row is there before the process has started.
  await trial.requests(1)
  expect(await trial.convergence()).toEqual([])
  expect(await trial.end()).toMatchObject({ status: 0 })
  await trial.simulator.change({ kind: 'delete', resource: 'messages', count: 2 })
  await trial.simulator.change({ kind: 'edit', resource: 'meetings', count: 2 })
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  expect(await trial.differences()).toEqual([])
})

test('a daemon with --since loads what is newer, and everything once it starts without it', async () => {
  trial = await startDaemonTrial()
  const since = new Date(trial.serverNow() - 300 * 86_400_000).toISOString()
  trial.go({ PARLEY_SYNC_SINCE: since })
  expect(await trial.convergence({ since })).toEqual([])
  await trial.simulator.change({ kind: 'delete', resource: 'messages', count: 2 })
  await trial.simulator.change({ kind: 'publishLate', resource: 'messages', count: 4 })
  expect(await trial.convergence({ since })).toEqual([])
  await trial.kill()
  trial.go()
  expect(await trial.convergence()).toEqual([])
})

test('a resource that is not selected is not read, and all of it is once it is selected', async () => {
  trial = await startDaemonTrial()
  trial.go({ PARLEY_SYNC_RESOURCES: 'teams,activities' })
  const tables = ['teams', 'team_members', 'activities', 'activity_links']
  expect(await trial.convergence({ tables })).toEqual([])
  expect(trial.rows('SELECT 1 FROM message_copies UNION ALL SELECT 1 FROM meetings')).toEqual([])
  await trial.end()
  trial.go()
  expect(await trial.convergence()).toEqual([])
})
