import type { Clock } from '../clock.ts'
import type { ChangeResult } from '../simulator/changes.ts'
import type { Sqlite, Statement } from '../store/open.ts'
import {
  type Chosen,
  DEMO_CHANGES,
  DEMO_TROUBLES,
  type DemoChange,
  type DemoTrouble,
  draw,
} from './demo-changes.ts'
import type { Limit } from './demo-processes.ts'

/** Has the workspace of a demo change all the time, and looks for every change in the warehouse. */
export interface DemoWorld {
  /** Makes what is due by now. @throws Error when the simulator does not answer */
  move(): Promise<void>
  /** Looks whether something has come through. */
  look(): void
  /** The API's own account: answers so far, and how many of them were 429. */
  requests(): Promise<{ total: number; throttled: number }>
  /** In the order in which they were made. */
  events(): readonly DemoEvent[]
}

export interface DemoEvent {
  /** In ms since the epoch. */
  at: number
  /** The kind of change; undefined for a trouble of the API. */
  kind: string | undefined
  /** Says more as soon as the change has come through. */
  what: string
  /** From the change until it was in the warehouse. */
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

interface Watched {
  event: DemoEvent
  madeAt: number
  arrived: Statement
  parameters: Chosen
}

const MEAN_GAP_MS = 3000
/** The first trouble, and then one after another. */
const CALM_MS = 60_000

export function createDemoWorld({ url, db, clock, random, limit }: DemoWorldDeps): DemoWorld {
  const events: DemoEvent[] = []
  const statements = new Map<string, Statement>()
  let watched: readonly Watched[] = []
  let nextChange = clock.elapsed()
  let nextTrouble = clock.elapsed() + CALM_MS
  let troubled = false

  const control = async (path: string, body?: unknown): Promise<unknown> => {
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(`${url}/_simulator/${path}`, sent)
    if (!response.ok) throw new Error(`the simulator answers ${response.status} to ${path}`)
    return response.json()
  }
  const prepared = (sql: string): Statement => {
    const statement = statements.get(sql) ?? db.prepare(sql)
    statements.set(sql, statement)
    return statement
  }

  const make = async ({ kind, choose, change, arrived }: DemoChange) => {
    const chosen = choose === undefined ? {} : (prepared(choose).get() as Chosen | undefined)
    // What is changed again may never be seen as it was.
    const isUnderWay = watched.some(({ parameters }) => parameters['id'] === chosen?.['id'])
    if (chosen === undefined || (choose !== undefined && isUnderWay)) return
    const made = { ...change, ...('id' in chosen && { id: chosen['id'] }) }
    const { ids } = (await control('changes', made)) as ChangeResult
    const at = clock.now()
    const madeAt = clock.elapsed()
    for (const id of ids) {
      const event = { at, kind, what: kind, lagMs: undefined }
      events.push(event)
      watched = [
        ...watched,
        { event, madeAt, arrived: prepared(arrived).pluck(), parameters: { ...chosen, id } },
      ]
    }
  }

  const trouble = async ({ what, faults, rate, ms }: DemoTrouble) => {
    if (faults) await control('faults', faults)
    if (rate !== undefined) await control('limit', { kind: 'token-bucket', rate, burst: rate })
    events.push({ at: clock.now(), kind: undefined, what, lagMs: undefined })
    nextTrouble = clock.elapsed() + ms
    troubled = true
  }

  const calm = async () => {
    await control('faults', [])
    await control('limit', { kind: 'token-bucket', ...limit })
    events.push({ at: clock.now(), kind: undefined, what: 'the API is well again', lagMs: undefined })
    nextTrouble = clock.elapsed() + CALM_MS
    troubled = false
  }

  return {
    async move() {
      if (clock.elapsed() >= nextTrouble) {
        const next = draw(DEMO_TROUBLES, random())
        if (troubled) await calm()
        else if (next) await trouble(next)
      }
      if (clock.elapsed() < nextChange) return
      nextChange += -Math.log(1 - random()) * MEAN_GAP_MS
      const change = draw(DEMO_CHANGES, random())
      if (change) await make(change)
    },
    look() {
      const now = clock.elapsed()
      watched = watched.filter(({ event, madeAt, arrived, parameters }) => {
        const what = arrived.get(parameters) as string | undefined
        if (what === undefined) return true
        Object.assign(event, { what, lagMs: now - madeAt })
        return false
      })
    },
    async requests() {
      const { total, counts } = (await control('requests')) as RequestCounts
      const throttled = counts.filter(({ status }) => status === 429)
      return { total, throttled: throttled.reduce((sum, { count }) => sum + count, 0) }
    },
    events: () => events,
  }
}

interface RequestCounts {
  total: number
  counts: readonly { status: number; count: number }[]
}
