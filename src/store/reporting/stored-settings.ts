import { hasTable } from '../database/existing-tables.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { createMeta, META } from '../sync/meta.ts'

/** What the last writer has found out about reports, for `parley doctor`. */

export interface StoredReports {
  /** Fields that were guessed. */
  guesses: readonly { name: string; value: string }[]
  /** Of the last seven days. */
  changes: readonly { name: string; before: string | null; after: string | null }[]
  /** Stages of deals of which nothing says whether they are open, won or lost, by name or else by id. */
  unknownStages: readonly string[]
}

/** Undefined in a warehouse of an older version. */
export function storedReports(db: Sqlite): StoredReports | undefined {
  if (!hasTable(db, 'report_settings')) return undefined
  return {
    guesses: db
      .prepare<unknown[], { name: string; value: string }>(
        `SELECT name, value FROM report_settings WHERE is_guessed AND value IS NOT NULL
         AND name LIKE 'crm.%.%' AND name NOT LIKE '%.object' AND name <> 'crm.deal.status_values' ORDER BY name`,
      )
      .all(),
    changes: db
      .prepare<unknown[], { name: string; before: string | null; after: string | null }>(
        `SELECT name, old_value AS before, new_value AS after FROM report_settings_changes
         WHERE changed_at >= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-7 days') ORDER BY changed_at, name`,
      )
      .all(),
    unknownStages: hasTable(db, 'stage_outcomes')
      ? db
          .prepare<unknown[], string>(
            `SELECT coalesce(stage, stage_id) FROM stage_outcomes WHERE outcome IN ('unknown', 'closed')
             AND stage_id IN (SELECT stage_id FROM deals) ORDER BY 1`,
          )
          .pluck()
          .all()
      : [],
  }
}

/** Settings about reports that fit nothing in the CRM, as sentences. */
export function reportProblems(db: Sqlite): readonly string[] {
  const stored: unknown = JSON.parse(createMeta(sql => db.prepare(sql)).get(META.reportProblems) ?? '[]')
  return Array.isArray(stored) ? stored.map(String) : []
}
