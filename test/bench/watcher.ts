import type { Sqlite } from '../../src/store/database/sqlite-types.ts'

/** An item to look for in the warehouse, by its key. */
const MEASURES = {
  'new messages': 'SELECT 1 FROM live_message_copies WHERE id = @key',
  'texts of new messages': "SELECT 1 FROM live_messages WHERE id = @key AND text_state <> 'pending'",
  'new activities': 'SELECT 1 FROM live_activities WHERE id = @key',
  'new meetings with their title': 'SELECT 1 FROM live_meetings WHERE id = @key AND title IS NOT NULL',
  'transcripts of new meetings':
    "SELECT 1 FROM live_meetings WHERE id = @key AND transcript_state <> 'pending'",
  'changed fields of CRM records':
    "SELECT 1 FROM live_crm_records WHERE object = 'deal' AND id = @key AND fields ->> @path = @value",
} as const

export type MeasureName = keyof typeof MEASURES

const MEASURE_NAMES = Object.keys(MEASURES) as MeasureName[]

/** A published item that has not appeared yet. */
export interface Watch {
  measure: MeasureName
  key: string
  /** By `performance.now`. */
  publishedAt: number
  parameters: Readonly<Record<string, string>>
}

export interface Measured {
  measure: MeasureName
  /** Times from published to queryable, in ms, ascending. */
  lags: readonly number[]
  /** Items that are still published but never appeared. */
  missing: number
}

export interface Watcher {
  /** Items that have not appeared yet. */
  open(): readonly Watch[]
  add(watches: readonly Watch[]): void
  look(): void
  /** @param listed ids of all items that the API lists at the end */
  measured(listed: ReadonlySet<string>): Measured[]
}

export function createWatcher(db: Sqlite): Watcher {
  const statements = new Map(MEASURE_NAMES.map(measure => [measure, db.prepare(MEASURES[measure])]))
  const lags = new Map<MeasureName, number[]>(MEASURE_NAMES.map(measure => [measure, []]))
  let open: readonly Watch[] = []
  const isThere = ({ measure, parameters }: Watch) => statements.get(measure)?.get(parameters) !== undefined
  return {
    open: () => open,
    add(watches) {
      // An item that changes again may never be seen in the earlier state.
      const isOutdated = (old: Watch) =>
        watches.some(({ measure, key }) => measure === old.measure && key === old.key)
      open = [...open.filter(old => !isOutdated(old)), ...watches]
    },
    look() {
      const there = new Set(open.filter(isThere))
      for (const { measure, publishedAt } of there) lags.get(measure)?.push(performance.now() - publishedAt)
      open = open.filter(watch => !there.has(watch))
    },
    measured: listed =>
      MEASURE_NAMES.map(measure => ({
        measure,
        lags: (lags.get(measure) ?? []).sort((one, other) => one - other),
        missing: open.filter(watch => watch.measure === measure && listed.has(watch.key)).length,
      })),
  }
}
