import { afterEach, expect, test } from 'vitest'
import { type DaemonTrial, startDaemonTrial } from './daemon-trial.ts'

let trial: DaemonTrial

afterEach(() => trial.close())

const NEW = 900
/** They span three days. */
const APART_MS = (3 * 86_400_000) / NEW

/** Walks that have begun and not ended, and spans that were never listed. */
const UNFINISHED = `SELECT count(*) AS count FROM sync_segments
  WHERE feed = 'messages.list' AND (listed_at IS NULL OR cursor IS NOT NULL)`

function stored(): number {
  const [row] = trial.rows('SELECT count(*) AS count FROM message_copies')
  return Number(row?.['count'])
}

/** New messages of the last days, as a pause of days would leave them. */
async function publishLately(count: number): Promise<void> {
  const { ids } = await trial.simulator.change({ kind: 'publish', resource: 'messages', count })
  const end = trial.serverNow()
  const at = (place: number): number => Math.floor((end - 5000 - place * APART_MS) * 1000)
  await trial.simulator.changeAtOnce(
    ids.map((id, place) => ({ kind: 'edit', resource: 'messages', ids: [id], at: at(place) })),
  )
}

test('killed again and again while it catches up after a long pause it leaves no gap', async () => {
  trial = await startDaemonTrial()
  trial.go()
  expect(await trial.convergence()).toEqual([])
  expect(await trial.end()).toMatchObject({ status: 0 })
  const before = stored()
  await publishLately(NEW)
  // Slow enough that the way down takes longer than a poll.
  await trial.simulator.setLimit({ kind: 'token-bucket', rate: 12, burst: 4 })

  const midway: boolean[] = []
  for (let kills = 0; kills < 4; kills++) {
    trial.go()
    await trial.kill({ number: 25 + 5 * kills, phase: kills % 2 === 0 ? 'answer' : 'request' })
    const [row] = trial.rows(UNFINISHED)
    midway.push(stored() > before && stored() < before + NEW && Number(row?.['count']) > 0)
  }
  expect(midway).toContain(true)
  // What comes meanwhile lies above all that is still to be caught up with.
  await trial.simulator.change({ kind: 'publish', resource: 'messages', count: 3 })
  await trial.simulator.setLimit({ kind: 'none' })
  trial.go()
  expect(await trial.convergence()).toEqual([])
})
