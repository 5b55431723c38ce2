import type { Clock } from '../base/clock.ts'
import type { StoredCell } from '../store/database/sqlite-types.ts'

/**
 * Passes the rows of a table to one sink for each partition. The event loop gets turns in between, so that signals
 * arrive.
 */

/** A month or a range of keys; null for rows without a time, and for all rows of an exported table that has none. */
export type Partition = string | null

export interface Sink<Result> {
  /** Adds a row. The cells are in the order of `sourcesOf` of the table's columns. */
  add(cells: readonly StoredCell[]): void
  finish(): Result
  abandon(): void
}

export interface PartitionReading {
  clock: Clock
  /** An abort stops between two rows and throws the signal's reason. */
  signal: AbortSignal
  /** Called from time to time with the number of rows read since the last call. */
  onRows(rows: number): void
}

/** Which table a command is at. */
export interface TableProgress {
  table: string
  done: number
  tables: number
  /** Rows read so far, including rows that were only compared. */
  rows: number
}

/** An `onRows` that counts the rows of one table and reports the sum. */
export function createRowCounter(
  at: Omit<TableProgress, 'rows'>,
  onProgress: (progress: TableProgress) => void,
): PartitionReading['onRows'] {
  let rows = 0
  return read => {
    rows += read
    onProgress({ ...at, rows })
  }
}

/** The clock is checked after this number of rows, and the event loop gets a turn when `TURN_MS` have passed. */
const CHECK_ROWS = 500
const TURN_MS = 50

export const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))

/** @param rows the last cell of each row is its partition; the rows of a partition are consecutive */
export async function readPartitions<Result>(
  { clock, signal, onRows }: PartitionReading,
  rows: Iterable<StoredCell[]>,
  open: (partition: Partition) => Sink<Result>,
): Promise<Map<Partition, Result>> {
  const results = new Map<Partition, Result>()
  let current: { partition: Partition; sink: Sink<Result> } | undefined
  let read = 0
  let turnedAt = clock.elapsed()
  try {
    for (const row of rows) {
      const partition = row.pop() as Partition
      if (!current || current.partition !== partition) {
        if (current) results.set(current.partition, current.sink.finish())
        current = { partition, sink: open(partition) }
      }
      current.sink.add(row)
      read += 1
      if (read % CHECK_ROWS !== 0 || clock.elapsed() - turnedAt < TURN_MS) continue
      onRows(read)
      read = 0
      await nextTurn()
      if (signal.aborted) throw signal.reason
      turnedAt = clock.elapsed()
    }
    if (current) results.set(current.partition, current.sink.finish())
    onRows(read)
    return results
  } catch (error) {
    current?.sink.abandon()
    throw error
  }
}
