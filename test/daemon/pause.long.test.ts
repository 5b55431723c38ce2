import { afterEach, expect, test } from 'vitest'
import { type DaemonTrial, startDaemonTrial } from './daemon-trial.ts'

let trial: DaemonTrial

afterEach(() => trial.close())

const NEW = 900
/** The messages span three days. */
const APART_MS = (3 * 86_400_000) / NEW

/** Passes that have started and not ended, and spans that were never listed. */
const UNFINISHED = `SELECT count(*) AS count FROM sync_segments
  WHERE feed = 'messages.list' AND (listed_at IS NULL OR cursor IS NOT NULL)`

function stored(): number {
  const [row] = trial.rows('SELECT count(*) AS count FROM message_copies')
  return Number(row?.['count'])
}

/** Publishes messages dated over the last three days, as the daemon finds them after being stopped that long. */
async function publishLately(count: number): Promise<void> {
  const { ids } = await trial.simulator.change({ kind: 'publish', resource: 'messages', count })
  const end = trial.serverNow()
  const at = (place: number): number => Math.floor((end - 5000 - place * APART_MS) * 1000)
  await trial.simulator.changeAtOnce(
    ids.map((id, place) => ({ kind: 'edit', resource: 'messages', ids: [id], at: at(place) })),
  )
}

const TIMELINES = ['activities', 'activity_links', 'message_copies', 'messages', 'message_participants']

test('a daemon that is killed repeatedly while it catches up after a long pause leaves no gap', async () => {
  trial = await startDaemonTrial({}, { PARLEY_SYNC_RESOURCES: 'activities,message_bodies' })
  trial.go()
  expect(await trial.convergence({ tables: TIMELINES })).toEqual([])
  expect(await trial.end()).toMatchObject({ status: 0 })
  const before = stored()
  await publishLately(NEW)
  // Slow enough that catching up takes longer than a poll.
  await trial.simulator.setLimit({ kind: 'token-bucket', rate: 12, burst: 4 })

  const isFurtherPage = (path: string) => path.startsWith('/v2/messages?') && path.includes('cursor=')
  const midway: boolean[] = []
  for (let kills = 1; kills < 5; kills++) {
    trial.go()
    await trial.killBefore(kills, isFurtherPage)
    const [row] = trial.rows(UNFINISHED)
    midway.push(stored() > before && stored() < before + NEW && Number(row?.['count']) > 0)
  }
  expect(midway.slice(0, 2)).toEqual([true, true])
  // New messages are above the span that is still unread.
  await trial.simulator.change({ kind: 'publish', resource: 'messages', count: 3 })
  await trial.simulator.setLimit({ kind: 'none' })
  trial.go()
  expect(await trial.convergence({ tables: TIMELINES })).toEqual([])
})

test('a suspended process continues where it was', async () => {
  trial = await startDaemonTrial()
  const { pid } = trial.go()
  expect(await trial.convergence()).toEqual([])
  process.kill(pid ?? 0, 'SIGSTOP')
  await publishLately(150)
  await trial.simulator.change({ kind: 'delete', resource: 'activities', count: 4 })
  await trial.simulator.change({ kind: 'edit', resource: 'crm_records', count: 2 })
  process.kill(pid ?? 0, 'SIGCONT')
  expect(await trial.convergence()).toEqual([])
})
