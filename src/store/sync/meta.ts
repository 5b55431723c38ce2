/** Names under which values of the database as a whole stand in `sync_meta`. */
export const META = {
  /** By which it is told from every other warehouse; a copy has the same. */
  identity: 'identity',
  /** Differences between payloads and declarations that were logged: table, field and kind of each. */
  drift: 'drift',
  /** The fields without a column that each endpoint has shown. */
  shownFields: 'shown_fields',
  /** The workspace whose rows it holds, and where they were read. */
  workspace: 'workspace',
  /** Who writes it, or wrote it last. */
  writer: 'writer',
  /** What the daemon does now, for people: in `parley status`, on `/readyz` and in systemd's status. */
  daemonState: 'daemon_state',
  /** When and how the last backfill that was not cut off ended. */
  backfillEnd: 'backfill_end',
  learnedRate: 'learned_rate',
  requestsToday: 'requests_today',
  /** While the API cannot be asked: why, since when and until when; null when it can. */
  unreachable: 'unreachable',
  /** What the clock of the writer's machine said last, noted each minute. */
  clock: 'clock',
  /** When the last maintenance ended; noted only while this machine's clock agreed with the API's. */
  maintainedAt: 'maintained_at',
  /** When the first maintenance ended: before it no clock was known to be right. */
  firstMaintainedAt: 'first_maintained_at',
  /** When content was last purged, by a clock that agreed with the API's. */
  purgedAt: 'erased_at',
  /** Since when the WAL may hold what was purged. Noted in the transaction that purges. */
  logHoldsPurged: 'log_holds_erased',
  /** Since when free space in the file may hold pieces of what was purged. Noted in the transaction that purges. */
  fileHoldsPieces: 'file_holds_pieces',
  /** When the file was last begun to be written anew on the disk. */
  rebuildTriedAt: 'rebuild_tried_at',
  /** Folders in which kept snapshots may lie, earlier settings included. */
  snapshotFolders: 'snapshot_folders',
  /** Digest of the declarations that `data_dictionary` was made of. */
  dictionary: 'dictionary',
  /** Digest of the questions that `parley_questions` was made of. */
  questions: 'questions',
  /** How the daemon's snapshots came out; null where it makes none any more. */
  snapshots: 'snapshots',
} as const
