import { afterEach, expect, test } from 'vitest'
import type { Fields } from '../support/exact-json.ts'
import { type DaemonTrial, startDaemonTrial } from './daemon-trial.ts'

let trial: DaemonTrial

afterEach(() => trial.close())

const YEAR_MS = 365 * 86_400_000

async function idsOlderThan(
  kind: 'messages' | 'meetings',
  { id, time, years }: { id: string; time: string; years: number },
): Promise<string[]> {
  const isOld = (item: Fields) => Date.parse(String(item[time])) < trial.serverNow() - years * YEAR_MS
  return (await trial.simulator.truth(kind)).filter(isOld).map(item => String(item[id]))
}

test('items that are published today with an event time of three years ago arrive within the audit interval', async () => {
  trial = await startDaemonTrial({ historyDays: 4 * 365, meetings: 12 })
  const messages = (await idsOlderThan('messages', { id: 'id', time: 'received_at', years: 3 })).slice(0, 3)
  const meetings = await idsOlderThan('meetings', { id: 'meeting_id', time: 'start_time', years: 3 })
  expect([messages.length, meetings.length > 0]).toEqual([3, true])
  await trial.simulator.change({ kind: 'hide', resource: 'messages', ids: messages })
  await trial.simulator.change({ kind: 'hide', resource: 'meetings', ids: meetings })
  trial.go()
  expect(await trial.convergence()).toEqual([])

  await trial.simulator.change({ kind: 'reveal', resource: 'messages', ids: messages })
  await trial.simulator.change({ kind: 'reveal', resource: 'meetings', ids: meetings })
  await trial.audit()
  const here = trial.rows('SELECT id FROM message_copies WHERE _deleted_at IS NULL').map(({ id }) => id)
  expect(here).toEqual(expect.arrayContaining(messages))
  expect(await trial.convergence()).toEqual([])
})

test('old e-mails of a newly connected mailbox arrive within the audit interval, with their texts', async () => {
  trial = await startDaemonTrial({ historyDays: 4 * 365 })
  trial.go()
  expect(await trial.convergence()).toEqual([])
  const { ids } = await trial.simulator.change({ kind: 'publishLate', resource: 'messages', count: 250 })
  await trial.audit()
  const here = trial.rows('SELECT id FROM message_copies WHERE _deleted_at IS NULL').map(({ id }) => id)
  expect(here).toEqual(expect.arrayContaining(ids))
  expect(await trial.convergence()).toEqual([])
})
