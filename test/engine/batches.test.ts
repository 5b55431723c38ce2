import { describe, expect, test } from 'vitest'
import type { Batches } from '../../src/engine/context/job.ts'
import { linksAnswer } from '../../src/engine/modes/items/record-links.ts'
import { type BatchPlan, byRange, createPlanInBatches } from '../../src/engine/scheduler/batch-plan.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { startCrm } from './crm-world.ts'
import { startTrial } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const ROWS = 23_456

const always = () => true

/** Runs the event loop until the plan is made. */
async function made(plan: BatchPlan): Promise<void> {
  while (!plan.isReady()) await new Promise(setImmediate)
}

interface Trial {
  plan: BatchPlan
  /** The work in its order: ranges of numbers, and notes of the test. */
  done: unknown[]
  transaction<T>(work: () => T): Promise<T>
}

function plan({
  isTimed,
  rows = ROWS,
  fault,
}: {
  isTimed: boolean
  rows?: number
  fault?: () => void
}): Trial {
  const store = temporaryStore()
  const done: unknown[] = []
  const made = createPlanInBatches(
    { store, schedule: { isTimed } },
    {
      canBegin: always,
      *batches(): Batches {
        yield* byRange(0, rows, ({ after, upTo }) => {
          if (done.length > 2) fault?.()
          done.push([after, upTo])
        })
        done.push('ended')
      },
    },
  )
  return { plan: made, done, transaction: store.transaction }
}

const RANGES = [
  [0, 5000],
  [5000, 10_000],
  [10_000, 15_000],
  [15_000, 20_000],
  [20_000, ROWS],
]

describe('a plan of many rows', () => {
  test('the plan lets other transactions run between its batches in the daemon', async () => {
    const trial = plan({ isTimed: true })
    expect(trial.plan.isReady()).toBe(false)
    await trial.transaction(() => trial.done.push('another'))
    await made(trial.plan)
    const place = trial.done.indexOf('another')
    expect(place).toBeGreaterThan(0)
    expect(place).toBeLessThan(RANGES.length)
    expect(trial.done.filter(entry => entry !== 'another')).toEqual([...RANGES, 'ended'])
  })

  test('a backfill makes the plan at once, since it would otherwise end while nothing is due', () => {
    const trial = plan({ isTimed: false })
    expect(trial.plan.isReady()).toBe(true)
    expect(trial.done).toEqual([...RANGES, 'ended'])
  })

  test('a plan that is outdated before it is done is made again afterwards', async () => {
    const trial = plan({ isTimed: true })
    expect(trial.plan.isReady()).toBe(false)
    trial.plan.invalidate()
    await made(trial.plan)
    expect(trial.done).toEqual([...RANGES, 'ended', ...RANGES, 'ended'])
  })

  test('a plan that fails halfway logs this once, and is made again', async () => {
    let isFull = true
    const fault = () => {
      if (isFull) throw new Error('the disk is full')
    }
    const trial = plan({ isTimed: true, fault })
    await expect(made(trial.plan)).rejects.toThrow('the disk is full')
    isFull = false
    trial.done.splice(0)
    await made(trial.plan)
    expect(trial.done).toEqual([...RANGES, 'ended'])
  })
})

describe('the state of a plan', () => {
  test.each([0, 1, 5000])('a plan of %i rows is made at once', rows => {
    const trial = plan({ isTimed: true, rows })
    expect(trial.plan.isReady()).toBe(true)
    expect(trial.done.at(-1)).toBe('ended')
    expect(trial.plan.isReady()).toBe(true)
    expect(trial.done.filter(entry => entry === 'ended')).toHaveLength(1)
  })

  test('a plan waits for its sources, and stays until it is forgotten', () => {
    const store = temporaryStore()
    let isThere = false
    let plans = 0
    const waiting = createPlanInBatches(
      { store, schedule: { isTimed: true } },
      {
        canBegin: () => isThere,
        // biome-ignore lint/correctness/useYield: the plan has a single step
        *batches() {
          plans += 1
        },
      },
    )
    expect(waiting.isReady()).toBe(false)
    isThere = true
    expect(waiting.isReady()).toBe(true)
    isThere = false
    expect(waiting.isReady()).toBe(true)
    waiting.invalidate()
    expect(waiting.isReady()).toBe(false)
    expect(plans).toBe(1)
  })
})

test('links are read once for each record, also when their plan takes several batches', async () => {
  const world = await startCrm({ deal: {}, company: {} })
  const trial = await startTrial(world.api)
  const { context } = await startTimed(world.api, trial, ['crm_objects', 'crm_records', 'crm_record_links'])
  const { db } = trial.store
  db.exec(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 18000)
     INSERT INTO crm_records (object, id, updated_at, fields, _first_seen_at, _synced_at, _deleted_at)
     SELECT iif(i % 3 = 0, 'deal', 'company'), printf('00000000-0000-4000-8000-%012d', i), NULL, '{}', 'x', 'x',
       iif(i % 5 = 0, '2026-01-01', NULL) FROM n`,
  )
  const batches = () => {
    if (!linksAnswer.plan) throw new TypeError('links have no plan')
    return linksAnswer.plan(context, 'crm_record_links.read')
  }
  const planned = createPlanInBatches(context, { canBegin: always, batches })
  expect(planned.isReady()).toBe(false)
  await made(planned)
  const asked = db.prepare("SELECT count(*) FROM sync_tasks WHERE scope = 'company<deal'").pluck().get()
  expect(asked).toBe(18_000 / 3 - 18_000 / 15)
  // No link is read from the other side, since there are fewer deals.
  expect(db.prepare("SELECT count(*) FROM sync_tasks WHERE scope = 'deal<company'").pluck().get()).toBe(0)
})
