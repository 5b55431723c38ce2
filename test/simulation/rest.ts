import { existsSync, statSync } from 'node:fs'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'

/** What must not grow while the workspace rests. */

/** By name: rows of each table of parley's own state, bytes of the write-ahead log, and requests of a day. */
export type Sizes = Readonly<Record<string, number>>

export function sizesOf(db: Sqlite, file: string, requests: number): Sizes {
  const tables = db
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'sync_*'")
    .pluck()
    .all() as string[]
  const rows = tables.map(table => [table, db.prepare(`SELECT count(*) FROM "${table}"`).pluck().get()])
  const log = `${file}-wal`
  return { ...Object.fromEntries(rows), '-wal': existsSync(log) ? statSync(log).size : 0, requests }
}

/** A rest that is shorter shows nothing: some reads are weeks apart, and minutes and runs are kept for weeks. */
const LEAST_DAYS = 90
/** How far the most of a third may lie above that of the third before, as a share. */
const SLACK = 0.1

/**
 * What has grown. The first third of the rest settles, and in the last third nothing may be larger than in the second.
 * @param days one entry for each day of the rest
 */
export function grown(days: readonly Sizes[]): string[] {
  if (days.length < LEAST_DAYS) return []
  const third = Math.floor(days.length / 3)
  const most = (name: string, part: readonly Sizes[]) => Math.max(...part.map(sizes => sizes[name] ?? 0))
  return Object.keys(days.at(-1) ?? {}).flatMap(name => {
    const before = most(name, days.slice(third, 2 * third))
    const after = most(name, days.slice(2 * third))
    return after > before * (1 + SLACK) + 2
      ? [`${name} grows while nothing changes: at most ${before}, then ${after}`]
      : []
  })
}
