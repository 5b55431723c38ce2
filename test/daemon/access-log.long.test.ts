import { afterEach, expect, test } from 'vitest'
import type { Fields } from '../support/exact-json.ts'
import { until } from '../support/until.ts'
import { type DaemonTrial, startDaemonTrial } from './daemon-trial.ts'

let trial: DaemonTrial

afterEach(() => trial.close())

/** Times and paths of all entries up to an instant, duplicates included. */
function logged(entries: readonly Fields[], upTo: string): string[] {
  const lines = entries.flatMap(({ occurred_at: at, path }) =>
    typeof at === 'string' ? [`${new Date(at).toISOString()} ${path}`] : [],
  )
  return lines.filter(line => line <= upTo).sort()
}

function stored(upTo: string): string[] {
  const sql = 'SELECT occurred_at, path FROM access_logs WHERE occurred_at <= ?'
  return trial
    .rows(sql, upTo)
    .map(({ occurred_at: at, path }) => `${at} ${path}`)
    .filter(line => line <= upTo)
    .sort()
}

test('the access log grows while it is read, and every entry is stored exactly once', async () => {
  trial = await startDaemonTrial({ logRequests: true })
  trial.go()
  await trial.requests(500)
  await trial.kill({ number: 20, phase: 'answer' })
  trial.go()
  await trial.requests(200)
  const mark = new Date(trial.serverNow()).toISOString()
  const truth = logged(await trial.simulator.truth('access_logs'), mark)
  const found = await until(
    () => stored(mark),
    rows => rows.length >= truth.length,
  )
  expect(found).toEqual(truth)
  await trial.audit()
  expect(stored(mark)).toEqual(truth)
})
