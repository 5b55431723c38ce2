import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { hasTable } from '../database/existing-tables.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'

/** Names of the values in `sync_meta`, which concern the whole database. */
export const META = {
  /** Unique id of the warehouse. A copy keeps it. */
  identity: 'identity',
  /** Logged differences between payloads and declarations: table, field and kind of each. */
  drift: 'drift',
  /** The fields without a column that each endpoint has sent. */
  shownFields: 'shown_fields',
  /** The workspace of the rows, and the API's address. */
  workspace: 'workspace',
  /** The process that writes the database, or wrote it last. */
  writer: 'writer',
  /** The resources that this process reads. */
  chosenResources: 'chosen_resources',
  /** The setting `sync.since` of this process as an instant; '' when everything is read. */
  since: 'since',
  /** The daemon's current state, for `parley status`, `/readyz` and systemd's status. */
  daemonState: 'daemon_state',
  /** When and how the last backfill ended. A killed backfill does not store this. */
  backfillEnd: 'backfill_end',
  learnedRate: 'learned_rate',
  requestsToday: 'requests_today',
  /** The clock of the writer's machine. Each process stores it when it starts to read, and each minute. */
  clock: 'clock',
  /** By how many milliseconds the clock of due times is ahead of the machine's; see `store/sync/due-clock.ts`. */
  dueAhead: 'due_ahead',
  /** How far the texts were read again; see `engine/due/text-sweep.ts`. */
  textSweep: 'text_sweep',
  /** When the last maintenance ended. Stored only while this machine's clock agreed with the API's. */
  maintainedAt: 'maintained_at',
  /** When the first maintenance began. Earlier instants in the database may have been recorded under a wrong clock. */
  firstMaintainedAt: 'first_maintained_at',
  /** When content was last purged, by a clock that agreed with the API's. */
  purgedAt: 'erased_at',
  /** Since when the WAL may hold purged content. Stored in the transaction that purges. */
  logHoldsPurged: 'log_holds_erased',
  /** Since when free space in the file may hold pieces of purged content. Stored in the transaction that purges. */
  fileHoldsPieces: 'file_holds_pieces',
  /** By place: files that may hold purged content, and unreadable snapshot folders, with paths and reasons. */
  purgeRemains: 'purge_remains',
  /** When parley last tried to rebuild the file on disk. */
  rebuildTriedAt: 'rebuild_tried_at',
  /** Folders that may hold kept snapshots, including those of earlier settings. */
  snapshotFolders: 'snapshot_folders',
  /** Digest of the declarations from which `data_dictionary` was filled. */
  dictionary: 'dictionary',
  /** The rules by which the tables for reports were last computed; see `store/reporting/follow.ts`. */
  reportRules: 'report_rules',
  /** By table: what was counted, and at which change; see `store/reporting/column-values.ts`. */
  countedValues: 'counted_values',
  /** Settings about reports that fit nothing in the CRM, as sentences. */
  reportProblems: 'report_problems',
  /** The resources that had been read completely when the settings for reports were last guessed. */
  guessedFrom: 'guessed_from',
  /** Whether the probabilities of deals without a pipeline are per cent. */
  percentWithoutPipeline: 'percent_without_pipeline',
  /** From what `deal_versions` was computed last; see `store/reporting/deal-versions.ts`. */
  dealVersions: 'deal_versions',
  /** Digest of the questions from which `parley_questions` was filled. */
  questions: 'questions',
  /** Result of the daemon's last snapshot; null after snapshots were turned off. */
  snapshots: 'snapshots',
  /** What the daemon publishes where, and when next; null after publications were turned off. */
  publishing: 'publishing',
  /** The problems that a hook was called for and that have not been reported as recovered. */
  announcedProblems: 'announced_problems',
  /** The newest openings by a writer; see `store/changes/changes-since.ts`. */
  openings: 'openings',
  /** By table: the greatest `_id` whose row was noted as new; see `store/changes/noted-changes.ts`. */
  notedRows: 'noted_rows',
} as const

export type Meta = ReturnType<typeof createMeta>

/** The values of `sync_meta`. They are read from the database each time, so that a rollback applies to them too. */
export function createMeta(prepare: Prepare) {
  const get = prepare<string>('SELECT value FROM sync_meta WHERE key = ?').pluck()
  const set = prepare(
    'INSERT INTO sync_meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
  )
  const remove = prepare('DELETE FROM sync_meta WHERE key = ?')
  return {
    get: (key: string) => get.get(key),
    set: (key: string, value: string) => void set.run(key, value),
    remove: (key: string) => void remove.run(key),
  }
}

/** A value of a database that may not have the table `sync_meta` yet. */
export function readMeta(db: Sqlite, key: string): string | undefined {
  if (!hasTable(db, 'sync_meta')) return undefined
  return db.prepare<unknown[], string>('SELECT value FROM sync_meta WHERE key = ?').pluck().get(key)
}

/** The code of the error about a value that is not JSON. */
export const NOTE_DAMAGED = 'note-damaged'

/**
 * The content of a value that is stored as JSON; undefined where nothing or null is stored.
 * @throws StopError with exit status 73 when the value is not JSON
 */
export function readNote<T>(meta: (key: string) => string | undefined, key: string): T | undefined {
  const text = meta(key)
  if (text === undefined) return undefined
  try {
    return (JSON.parse(text) as T | null) ?? undefined
  } catch {
    // The error of `JSON.parse` is dropped, since it would quote the value.
    throw new StopError(`The value ${key} in the table sync_meta of the database is not valid JSON`, {
      code: NOTE_DAMAGED,
      hint: 'Another program has changed it. Stop the daemon if it runs, then restore a snapshot with parley restore FILE.',
      exitStatus: EXIT_STATUS.databaseUnavailable,
    })
  }
}
