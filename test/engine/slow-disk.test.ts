import { expect, test } from 'vitest'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { startScriptedApi, v2Page } from '../support/scripted-api.ts'
import { message, startTrial, type Trial } from './trial-backfill.ts'

const MESSAGES = 400
const AT_ONCE = 8
const MOST_UNSTORED = 256

test('a busy disk leaves a bounded number of answers in memory, and all are stored in the end', async () => {
  const api = await startScriptedApi()
  const all = Array.from({ length: MESSAGES }, (_, index) => message(index))
  api.on('/v2/messages', () => v2Page(all))
  const trial = await startTrial(api)
  await trial.run(['messages'], { concurrency: AT_ONCE })
  // A checkpoint in another thread may hold the lock for seconds on a busy machine.
  const blocker = openSqlite(trial.path, { timeout: 60_000 })
  let blocked: Promise<void> | undefined
  let asked = 0
  let askedWhileBlocked = 0
  api.on('/v2/messages/{id}', ({ path }) => {
    asked += 1
    blocked ??= blockUntilQuiet(trial, blocker, () => asked).then(() => {
      askedWhileBlocked = asked
    })
    return { body: { ...all.find(({ id }) => path.endsWith(id)), text: 'Text' } }
  })
  const result = await trial.run(['messages', 'message_bodies'], { concurrency: AT_ONCE })
  await blocked
  blocker.close()
  expect(askedWhileBlocked).toBeGreaterThan(AT_ONCE)
  expect(askedWhileBlocked).toBeLessThanOrEqual(MOST_UNSTORED + AT_ONCE)
  expect(result.complete).toBe(true)
  expect(trial.column("SELECT count(*) FROM messages WHERE text_state = 'present'")).toEqual([MESSAGES])
})

const QUIET_TURNS = 500

/**
 * Keeps every other connection from writing until no request has come for many turns of the event loop. Time stands
 * still meanwhile: the writer waits ten seconds for a lock, and on a busy machine the turns may take longer.
 */
async function blockUntilQuiet({ clock, passTime }: Trial, db: Sqlite, asked: () => number): Promise<void> {
  db.exec('BEGIN IMMEDIATE')
  const began = clock.elapsed()
  let before = -1
  for (let quiet = 0; quiet < QUIET_TURNS; quiet += 1) {
    if (asked() > before) quiet = 0
    before = asked()
    await new Promise(resolve => setImmediate(resolve))
    passTime(began - clock.elapsed())
  }
  db.exec('ROLLBACK')
}
