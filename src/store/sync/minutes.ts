import type { RowOf } from '../../catalog/bookkeeping/table-declaration.ts'
import type { MINUTE_TABLE } from '../../catalog/bookkeeping/tables.ts'
import type { Prepare } from '../database/sqlite-types.ts'

/** A row of `sync_minutes`. */
export type Minute = RowOf<typeof MINUTE_TABLE>

export interface Minutes {
  /** Adds to the row of the minute: a process that starts within a minute continues the row of the process before. */
  add(minute: Minute): void
}

export function createMinutes(prepare: Prepare): Minutes {
  const add = prepare(
    `INSERT INTO sync_minutes (at, requests, throttled, errors, rows, rate, in_flight, paused_seconds)
     VALUES (@at, @requests, @throttled, @errors, @rows, @rate, @in_flight, @paused_seconds)
     ON CONFLICT (at) DO UPDATE SET requests = requests + excluded.requests,
       throttled = throttled + excluded.throttled, errors = errors + excluded.errors, rows = rows + excluded.rows,
       rate = excluded.rate, in_flight = max(in_flight, excluded.in_flight),
       paused_seconds = paused_seconds + excluded.paused_seconds`,
  )
  return { add: minute => void add.run(minute) }
}
