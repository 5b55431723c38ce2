import { randomUUID } from 'node:crypto'
import { CATALOG, tableNamed } from '../catalog/catalog.ts'
import type { Table } from '../catalog/resource.ts'
import type { Cell, ParsedItem } from '../catalog/row.ts'
import { type Clock, isoInstant } from '../clock.ts'
import { StopError } from '../errors.ts'
import { disableCrmTables } from './crm/off.ts'
import { type CrmTables, createCrmTables } from './crm/tables.ts'
import { type Attempts, createAttempts } from './database/attempts.ts'
import { closeDatabase, closeKeepingWal, closeMovedDatabase } from './database/close.ts'
import type { Prepare, Sqlite } from './database/connection.ts'
import { databaseError } from './database/faults.ts'
import { quote } from './database/sql.ts'
import { statementCache } from './database/statements.ts'
import { createTransaction, type Transaction } from './database/transaction.ts'
import { createWorkspaceRecorder, type WantedWorkspace } from './database/workspace.ts'
import { createPurger, type Purger } from './deletions/purge.ts'
import { createPurgeQueue, type PurgeQueue } from './deletions/purge-queue.ts'
import { createSeen, type Seen } from './deletions/seen.ts'
import { createSuspicions, keyOfRow, type Suspicions } from './deletions/suspicions.ts'
import { createTombstones, type Tombstones } from './deletions/tombstones.ts'
import { type FileWatch, watchFile } from './file/identity.ts'
import { type HeldLock, lockDatabase } from './file/lock.ts'
import { resolvedPath } from './file/names.ts'
import type { ModeChange } from './file/writable.ts'
import type { FileWork } from './maintenance/checkpoint-order.ts'
import { type Checkpoints, createCheckpoints } from './maintenance/checkpoints.ts'
import { createMaintenance, type Maintenance } from './maintenance/maintenance.ts'
import { rebuildOnDisk } from './maintenance/rebuild.ts'
import type { LeftOut } from './migrations/dependent-objects.ts'
import type { Upgrade } from './migrations/migrate.ts'
import { createFreshness, type Freshness } from './rows/freshness.ts'
import { createHistory, type NoteChanges } from './rows/history.ts'
import { createMessageMerge, type Group, type MessageMerge } from './rows/message-merge.ts'
import { createRowWriters, type RowWriters, type Written } from './rows/rows.ts'
import type { ShownBy } from './rows/shown-fields.ts'
import { createHasLiveRows, createRowState, type HasLiveRows, type RowStateOf } from './rows/state.ts'
import { createRowTimes, type RowTimes } from './rows/times.ts'
import { createTranscripts, type Transcripts } from './rows/transcripts.ts'
import { type Arrivals, createArrivals } from './sync/arrivals.ts'
import { META } from './sync/meta.ts'
import { createRejects, type Rejects } from './sync/rejects.ts'
import { createRequests, type Requests } from './sync/requests.ts'
import { createRuns, type Runs } from './sync/runs.ts'
import { createSegments, type Segments } from './sync/segments.ts'
import { createState, type State, seedResources } from './sync/state.ts'
import { createTasks, type Tasks } from './sync/tasks.ts'
import { fillDictionary } from './views/dictionary.ts'
import { fillQuestions } from './views/questions.ts'
import { openWarehouse } from './warehouse.ts'

export interface StoredItem {
  item: ParsedItem
  written: Written
}

export interface WriteOptions {
  /** Ticket of the request that brought the items: an older answer never overwrites a newer one. */
  ticket: number
  now: string
  /** parley's own columns that the items' cells contain. */
  filled?: readonly string[]
  /** The kind of endpoint that sent the items; default a list. */
  shownBy?: ShownBy
  /** A live row keeps its columns from the list; only fields without a column are added. */
  keepsLive?: boolean
}

/** The warehouse as the engine sees it. All except `transaction` and `purger.clean` is called inside a transaction. */
export interface Store {
  db: Sqlite
  prepare: Prepare
  freshness: Freshness
  segments: Segments
  seen: Seen
  tasks: Tasks
  suspicions: Suspicions
  arrivals: Arrivals
  maintenance: Maintenance
  rejects: Rejects
  requests: Requests
  runs: Runs
  state: State
  rows: RowWriters
  rowTimes: RowTimes
  rowState: RowStateOf
  hasLiveRows: HasLiveRows
  merge: MessageMerge
  tombstone: Tombstones['tombstone']
  withhold: Tombstones['withhold']
  transcripts: Transcripts
  purgeQueue: PurgeQueue
  purger: Purger
  crmTables: Pick<CrmTables, 'finish'>
  transaction: Transaction
  /** For synchronous work before a request, such as planning. */
  attempt: Attempts['attempt']
  waitUntilFree: Attempts['waitUntilFree']
  /**
   * Stores items of one table and returns them. Leaves out items that a later request has already written, and items
   * that belong to a deleted row.
   */
  write(table: string, items: readonly ParsedItem[], options: WriteOptions): StoredItem[]
  /** Releases the file. The last connection to close is a read-only one. */
  close(): void
}

export interface StoreOptions {
  path: string
  mode: number
  /** The workspace to read. */
  workspace?: WantedWorkspace
  /** The command that other processes see when they find the database locked. */
  command: string
  pid: number
  clock: Clock
  /** False: no typed tables for CRM objects. */
  crmTables?: boolean
  /** A lock that the caller holds and releases. */
  held?: HeldLock
  /** Called before a database of an older version is copied and migrated, which may take minutes. */
  onUpgrade?: (upgrade: Upgrade) => void
  /** Called for each trigger, index or view that parley did not create and that no longer fits the tables. */
  onLeftOut?: (object: LeftOut) => void
  /** With it, existing files get the mode too. Called for each file that had another mode. */
  onMode?: (change: ModeChange) => void
  /** Called with the milliseconds for which each transaction blocked the event loop. */
  onTransaction?: ((ms: number) => void) | undefined
}

/** How long opening waits for another program's transaction. */
const BUSY_PATIENCE_MS = 10_000
const BUSY_PAUSE_MS = 50

/**
 * Opens the warehouse as its only writer. Waits on the clock while another program has a transaction open.
 * @throws StopError 73 when it cannot be opened, 75 when another process writes it
 */
export async function openStoreInTurn(options: StoreOptions): Promise<Store> {
  const { clock } = options
  const begun = clock.elapsed()
  for (;;) {
    try {
      return openStore(options)
    } catch (error) {
      const isWorthWaiting = error instanceof StopError && error.code === 'database-busy'
      if (!isWorthWaiting || clock.elapsed() - begun > BUSY_PATIENCE_MS) throw error
    }
    await clock.sleep(BUSY_PAUSE_MS)
  }
}

/**
 * Opens the warehouse as its only writer, without waiting.
 * @throws StopError 73 when it cannot be opened, 75 when another process writes it
 */
export function openStore(options: StoreOptions): Store {
  const { mode, clock, held, workspace, onUpgrade, onLeftOut, onMode } = options
  const path = resolvedPath(options.path)
  const lock = held ?? lockDatabase(path, clock, mode)
  const release = () => {
    if (lock !== held) lock.release()
  }
  let db: Sqlite | undefined
  try {
    db = openWarehouse({ path, mode, workspace, onMode, onLeftOut, ...(onUpgrade ? { onUpgrade } : {}) })
    return storeOn(db, { ...options, path, lock, release })
  } catch (error) {
    if (db) closeKeepingWal(db)
    release()
    throw databaseError(error, path)
  }
}

interface Opened extends StoreOptions {
  lock: HeldLock
  release(): void
}

function storeOn(db: Sqlite, opened: Opened): Store {
  const { path, clock, command, pid, lock, release, onTransaction } = opened
  const prepare = statementCache(db)
  const checkpoints = createCheckpoints(db)
  const file = watchFile(path, clock)
  const commit = createTransaction({ db, clock, path, checkpoints, file, onBlocked: onTransaction })
  const crmTables =
    opened.crmTables === false
      ? disableCrmTables(db, prepare)
      : createCrmTables({ db, prepare, clock, transaction: commit })
  const store = {
    ...createStore({ db, prepare, commit, crmTables, checkpoints, workspace: opened.workspace }),
    close: () => closeAll({ db, file, checkpoints, crmTables, release }),
  }
  try {
    db.transaction(() => {
      seedResources(prepare)
      fillDictionary(prepare, store.state)
      fillQuestions(prepare, store.state)
      if (store.state.meta(META.identity) === undefined) store.state.setMeta(META.identity, randomUUID())
      store.state.setMeta(META.writer, JSON.stringify({ pid, command, since: lock.since }))
      store.runs.closeInterrupted(isoInstant(clock.now()))
    }).immediate()
  } catch (error) {
    crmTables.close()
    throw error
  }
  return store
}

interface Closing {
  db: Sqlite
  file: FileWatch
  checkpoints: Checkpoints
  crmTables: CrmTables
  release(): void
}

function closeAll({ db, file, checkpoints, crmTables, release }: Closing): void {
  try {
    crmTables.close()
    checkpoints.close()
    if (file.isMoved()) closeMovedDatabase(db)
    else closeDatabase(db)
  } finally {
    release()
  }
}

interface Parts {
  db: Sqlite
  prepare: Prepare
  commit: Transaction
  crmTables: CrmTables
  checkpoints: Pick<Checkpoints, 'schedule'>
  workspace: WantedWorkspace | undefined
}

function createStore({
  db,
  prepare,
  commit,
  crmTables,
  checkpoints,
  workspace,
}: Parts): Omit<Store, 'close'> {
  const freshness = createFreshness()
  const suspicions = createSuspicions(prepare)
  const purgeQueue = createPurgeQueue(prepare)
  const rows = createRowWriters(prepare, purgeQueue)
  const { merge, merges } = createMerges(prepare)
  const histories = createHistories(prepare)
  const state = createState(prepare)
  const claim = createWorkspaceRecorder(state, workspace)
  const attempts = createAttempts({ db, transaction: commit })
  const work = (what: FileWork): Promise<boolean> => {
    const done = checkpoints.schedule(what)
    // The work runs after the next commit, even an empty or failed one.
    commit(() => undefined).catch(() => undefined)
    return done
  }

  const isLive = (table: Table, key: readonly (Cell | undefined)[]) => {
    const where = table.key.map(column => `${quote(column)} = ?`).join(' AND ')
    const sql = `SELECT 1 FROM ${quote(table.name)} WHERE ${where} AND _deleted_at IS NULL`
    return prepare(sql).get(...key.map(cell => cell ?? null)) !== undefined
  }

  const write: Store['write'] = (name, items, { ticket, now, filled, shownBy, keepsLive = false }) => {
    if (items.length > 0) claim()
    const table = tableNamed(name)
    const writer = rows.to(name, { filled, shownBy, keepsLive })
    const keyIndexes = table.key.map(column => Object.keys(table.columns).indexOf(column))
    const merged = merges.get(name)
    const history = histories.get(name)
    const isSuspected = suspicions.hasAny(name)
    const isBlocked = purgeQueue.insertBlocker(name)
    const columns = Object.keys(table.columns)
    const stored: StoredItem[] = []
    const groups: Group[] = []
    for (const item of items) {
      const key = keyIndexes.map(index => item.cells[index])
      const row = key.join('\u0000')
      // An item that does not write the columns must not block the answer of an earlier list request, which does.
      const order = keepsLive && isLive(table, key) ? `${name} without columns` : name
      if (freshness.isOutdated(ticket, name, row) || !freshness.admits(ticket, order, row)) continue
      if (isBlocked?.(column => item.cells[columns.indexOf(column)] ?? null)) continue
      const written = writer(item, now)
      if (isSuspected) suspicions.end(keyOfRow(name, key.map(String)))
      if (written.status !== 'unchanged') {
        if (written.status !== 'inserted') purgeQueue.forget(name, key.map(String))
        if (merged && !written.isExtraAlone) groups.push(...groupsOf(merged, item, written))
        if (written.status === 'revived' && merged) merged.merge.resetText(String(key.at(-1)))
        history?.(item, written, now)
      }
      stored.push({ item, written })
    }
    merged?.merge.refresh(groups, now)
    if (merged) purgeQueue.updateMerged(merged, new Set(groups.map(({ key }) => key)))
    return stored
  }

  return {
    db,
    prepare,
    freshness,
    suspicions,
    rows,
    rowTimes: createRowTimes(prepare),
    rowState: createRowState(prepare),
    hasLiveRows: createHasLiveRows(prepare),
    merge,
    write,
    segments: createSegments(prepare),
    seen: createSeen(prepare),
    tasks: createTasks(prepare),
    arrivals: createArrivals(prepare),
    maintenance: createMaintenance(db, prepare, () => work('move')),
    rejects: createRejects(prepare),
    requests: createRequests(prepare),
    runs: createRuns(prepare),
    state,
    ...createTombstones({ prepare, suspicions, merges, purgeQueue, freshness }),
    transcripts: createTranscripts(prepare, rows),
    purgeQueue,
    purger: createPurger({
      db,
      prepare,
      state,
      transaction: commit,
      work,
      rebuildOnDisk: signal => rebuildOnDisk(db.name, signal),
    }),
    crmTables,
    transaction: Object.assign(<T>(work: () => T) => commit(withCrmTables(work, crmTables)), {
      commits: commit.commits,
      blockedMs: commit.blockedMs,
    }),
    attempt: work => attempts.attempt(withCrmTables(work, crmTables)),
    waitUntilFree: attempts.waitUntilFree,
  }
}

/** Updates the typed CRM tables in every transaction that changes their source rows. */
function withCrmTables<T>(work: () => T, { follow }: CrmTables): () => T {
  return () => {
    const result = work()
    follow()
    return result
  }
}

interface MergedTable {
  merge: MessageMerge
  /** The table of the merged rows. */
  into: string
  /** The column of a copy's row with the key of its merged row. */
  groupBy: string
  /** That key, from a copy's cells. */
  groupOf(cells: readonly (Cell | undefined)[]): string
}

function createMerges(prepare: Prepare) {
  const merges = new Map<string, MergedTable>()
  for (const { derivation } of CATALOG) {
    if (!derivation) continue
    const columns = Object.keys(tableNamed(derivation.from).columns)
    merges.set(derivation.from, {
      merge: createMessageMerge(prepare, derivation),
      into: derivation.into,
      groupBy: derivation.groupBy,
      groupOf: cells => derivation.groupOf(column => cells[columns.indexOf(column)] ?? null),
    })
  }
  const [first] = merges.values()
  if (!first) throw new TypeError('No resource declares a merge')
  return { merges, merge: first.merge }
}

/** The current group of a row and its previous one. */
function groupsOf({ groupOf }: MergedTable, item: ParsedItem, { before, isReplaced }: Written): Group[] {
  return [item.cells, ...(before ? [before] : [])].map(cells => ({ key: groupOf(cells), isReplaced }))
}

type NoteRow = (item: ParsedItem, written: Written, now: string) => void

function createHistories(prepare: Prepare): ReadonlyMap<string, NoteRow> {
  const histories = new Map<string, NoteRow>()
  for (const { history } of CATALOG) {
    if (!history) continue
    const columns = Object.keys(tableNamed(history.of).columns)
    histories.set(history.of, noteRow(createHistory(prepare, history), columns, history.column))
  }
  return histories
}

function noteRow(note: NoteChanges, columns: readonly string[], column: string): NoteRow {
  const [object, id, value] = ['object', 'id', column].map(name => columns.indexOf(name))
  return ({ cells }, { status, before }, now) => {
    // The content of a purged row is unknown, so its revival is no change.
    if (!before || (status === 'revived' && before[value ?? -1] === null)) return
    const text = (from: readonly unknown[]) => String(from[value ?? -1] ?? '{}')
    const record = { object: String(cells[object ?? -1]), id: String(cells[id ?? -1]) }
    note(record, text(before), text(cells), now)
  }
}
