import type { Clock } from '../../base/clock.ts'
import type { ChangeResult } from '../../simulator/changes/change.ts'
import type { Sqlite, Statement } from '../../store/database/sqlite-types.ts'
import { statementCache } from '../../store/database/statements.ts'
import {
  type ChosenItem,
  DEMO_CHANGES,
  DEMO_TROUBLES,
  type DemoChange,
  type DemoTrouble,
  pickWeighted,
} from './changes.ts'
import { controlSimulator, type Limit } from './processes.ts'

/** Keeps changing the workspace of a demo, and watches for each change in the warehouse. */
export interface DemoWorld {
  /** Makes the changes that are due. @throws Error when the simulator does not respond */
  makeDueChanges(): Promise<void>
  /** Checks which changes have arrived in the warehouse. */
  checkArrivals(): void
  /** In order of time. */
  events(): readonly DemoEvent[]
}

export interface DemoEvent {
  /** In ms since the epoch. */
  at: number
  /** The kind of change; undefined for an API problem. */
  kind: string | undefined
  /** A description, more detailed once the change has arrived. */
  what: string
  /** The time from the change until it arrived in the warehouse; undefined before that. */
  lagMs: number | undefined
}

export interface DemoWorldDeps {
  url: string
  /** A connection to the warehouse that only reads. */
  db: Sqlite
  clock: Clock
  /** From 0 to below 1. */
  random: () => number
  limit: Limit
}

interface AwaitedChange {
  event: DemoEvent
  madeAt: number
  arrived: Statement
  parameters: ChosenItem
}

const MEAN_GAP_MS = 3000
/** The time before each API problem. */
const CALM_MS = 60_000

export function createDemoWorld({ url, db, clock, random, limit }: DemoWorldDeps): DemoWorld {
  const events: DemoEvent[] = []
  let awaited: readonly AwaitedChange[] = []
  let nextChange = clock.elapsed()
  let nextTrouble = clock.elapsed() + CALM_MS
  let hasTrouble = false

  const control = (path: string, body?: unknown) => controlSimulator(url, path, body)
  const prepare = statementCache(db)

  const makeChange = async ({ kind, choose, change, arrived }: DemoChange) => {
    const chosen = choose === undefined ? {} : (prepare(choose).get() as ChosenItem | undefined)
    // A second change to the same item could hide the first one before it arrives.
    const isUnderWay = awaited.some(({ parameters }) => parameters['id'] === chosen?.['id'])
    if (chosen === undefined || (choose !== undefined && isUnderWay)) return
    const made = { ...change, ...('id' in chosen && { id: chosen['id'] }) }
    const { ids } = (await control('changes', made)) as ChangeResult
    const at = clock.now()
    const madeAt = clock.elapsed()
    for (const id of ids) {
      const event = { at, kind, what: kind, lagMs: undefined }
      events.push(event)
      awaited = [
        ...awaited,
        { event, madeAt, arrived: prepare(arrived).pluck(), parameters: { ...chosen, id } },
      ]
    }
  }

  const startTrouble = async ({ what, faults, rate, ms }: DemoTrouble) => {
    if (faults) await control('faults', faults)
    if (rate !== undefined) await control('limit', { kind: 'token-bucket', rate, burst: rate })
    events.push({ at: clock.now(), kind: undefined, what, lagMs: undefined })
    nextTrouble = clock.elapsed() + ms
    hasTrouble = true
  }

  const endTrouble = async () => {
    await control('faults', [])
    await control('limit', { kind: 'token-bucket', ...limit })
    events.push({ at: clock.now(), kind: undefined, what: 'the API works normally again', lagMs: undefined })
    nextTrouble = clock.elapsed() + CALM_MS
    hasTrouble = false
  }

  return {
    async makeDueChanges() {
      if (clock.elapsed() >= nextTrouble) {
        const next = pickWeighted(DEMO_TROUBLES, random())
        if (hasTrouble) await endTrouble()
        else if (next) await startTrouble(next)
      }
      if (clock.elapsed() < nextChange) return
      nextChange += -Math.log(1 - random()) * MEAN_GAP_MS
      const change = pickWeighted(DEMO_CHANGES, random())
      if (change) await makeChange(change)
    },
    checkArrivals() {
      const now = clock.elapsed()
      awaited = awaited.filter(({ event, madeAt, arrived, parameters }) => {
        const what = arrived.get(parameters) as string | undefined
        if (what === undefined) return true
        Object.assign(event, { what, lagMs: now - madeAt })
        return false
      })
    },
    events: () => events,
  }
}
