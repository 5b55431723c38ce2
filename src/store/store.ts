import { randomUUID } from 'node:crypto'
import { type Clock, isoInstant } from '../base/clock.ts'
import { createNotedChanges, type NotedChanges } from './changes/noted-changes.ts'
import { createCrmFieldReader } from './crm/sql.ts'
import {
  type CrmTables,
  createCrmTables,
  disableCrmTables,
  type TypedTableChange,
} from './crm/typed-tables.ts'
import { closeDatabase, closeKeepingWal, closeMovedDatabase, emptyWal } from './database/connections.ts'
import type { LeftOut } from './database/existing-tables.ts'
import type { Prepare, Sqlite } from './database/sqlite-types.ts'
import { statementCache } from './database/statements.ts'
import { createTransaction, type Transaction, whileBusy } from './database/transaction.ts'
import { type Checkpoints, createCheckpoints } from './database/wal-checkpoints.ts'
import { createPurger } from './deletions/purge.ts'
import { createPurgeQueue } from './deletions/purge-queue.ts'
import { createSuspicions } from './deletions/suspicions.ts'
import { fillDictionary, fillQuestions } from './dictionary/fill-dictionary.ts'
import { identityOf, resolvedPath, watchFile } from './disk/location.ts'
import { createRequests } from './file/handed-over.ts'
import { type HeldLock, lockDatabase } from './file/lock.ts'
import type { ModeChange } from './file/open.ts'
import { createWorkspaceRecorder, type WantedWorkspace } from './file/workspace.ts'
import { createMaintenance, rebuildFile } from './maintenance/maintenance.ts'
import { writeError } from './migrations/foreign-objects.ts'
import type { Upgrade } from './migrations/migrate.ts'
import { openWarehouse } from './open-warehouse.ts'
import { createPeopleVersions } from './reporting/people-versions.ts'
import { createReports } from './reporting/reports.ts'
import { reportViews } from './reporting/views.ts'
import { createPendingRows } from './rows/awaiting-read.ts'
import { createRowTimes } from './rows/event-times.ts'
import { createFreshness } from './rows/freshness.ts'
import { createLinks } from './rows/links.ts'
import { createMessageMerge } from './rows/merge/messages.ts'
import { createOlderAnswers } from './rows/older-answers.ts'
import { createRowWriters } from './rows/payload-writer.ts'
import { createStoredRows } from './rows/row-state.ts'
import { createTombstones } from './rows/tombstones.ts'
import { createTranscripts } from './rows/transcripts.ts'
import { createHistory, createWrite } from './rows/write-items.ts'
import { invalidateDroppedSearch, withoutDamagedSearch } from './search/index-marks.ts'
import { createLagHistogram } from './sync/arrivals.ts'
import { createDueClock } from './sync/due-clock.ts'
import { createGates } from './sync/gates.ts'
import { META } from './sync/meta.ts'
import { createPublications } from './sync/publications.ts'
import { createRejects } from './sync/rejects.ts'
import { createState, seedResources } from './sync/resource-state.ts'
import { createResync } from './sync/resync.ts'
import { createRounds } from './sync/rounds.ts'
import { createDays, createMinuteCounts, createRuns } from './sync/runs.ts'
import { createSegments } from './sync/segments.ts'
import { createAssociationTasks } from './sync/tasks/association-tasks.ts'
import { createLookupTasks } from './sync/tasks/lookups.ts'
import { createSeen } from './sync/tasks/seen-keys.ts'
import { createTasks } from './sync/tasks/tasks.ts'
import type { Writer } from './sync/writer-note.ts'
import { dealViews } from './views/deal-views.ts'

/** The warehouse for the process that opened it as its writer. */
export type OpenStore = ReturnType<typeof storeOn>

/**
 * The warehouse as the engine sees it. Another database would have the same functions, and `app/logged-store.ts` would
 * open it instead of calling `openStoreWhenFree`. Code that takes `OpenStore` or opens the file itself (status, search,
 * export, snapshots, retention, doctor) uses SQLite directly. A function that writes must be called inside
 * `transaction` or `attempt`, unless its comment says otherwise.
 */
export type Store = Omit<OpenStore, 'db' | 'prepare' | 'close'>

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
  /** Called for each typed table of a CRM object that is replaced or dropped. */
  onTypedTable?: (change: TypedTableChange) => void
  /** When set, existing files get the mode too. Called for each file that had another mode. */
  onMode?: (change: ModeChange) => void
  /** Called when a full-text index is damaged or dropped. All indices are then invalid, and are built from the rows. */
  onDamagedSearch?: () => void
  /** Called with the bytes that checkpoints cannot move out of the WAL, once each time the WAL becomes very large. */
  onWalHeld?: (bytes: number) => void
  /** Called with the milliseconds for which each transaction blocked the event loop. */
  onTransaction?: ((ms: number) => void) | undefined
}

/**
 * Opens the warehouse as its only writer. Tries again for a while when another program has a transaction open.
 * @throws StopError 73 when it cannot be opened, 75 when another process writes it, 78 for another workspace
 */
export function openStoreWhenFree(options: StoreOptions): Promise<OpenStore> {
  return whileBusy(options.clock, () => openStore(options))
}

/**
 * Opens the warehouse as its only writer, without waiting.
 * @throws StopError 73 when it cannot be opened, 75 when another process writes it, 78 for another workspace
 */
export function openStore(options: StoreOptions): OpenStore {
  const { mode, clock, held, workspace, onUpgrade, onLeftOut, onMode } = options
  const path = resolvedPath(options.path)
  const lock = held ?? lockDatabase(path, clock, mode)
  const release = () => {
    if (lock !== held) lock.release()
  }
  let db: Sqlite | undefined
  try {
    db = openWarehouse({ path, mode, workspace, onMode, onLeftOut, ...(onUpgrade ? { onUpgrade } : {}) })
    if (invalidateDroppedSearch(db)) options.onDamagedSearch?.()
    return storeOn(db, { ...options, path, lock, release })
  } catch (error) {
    if (db) closeKeepingWal(db)
    release()
    throw writeError(error, path)
  }
}

interface Opened extends StoreOptions {
  lock: HeldLock
  release(): void
}

function storeOn(db: Sqlite, opened: Opened) {
  const { path, clock, command, pid, lock, release, onLeftOut, onTransaction, onTypedTable } = opened
  const prepare = statementCache(db)
  const checkpoints = createCheckpoints(db, { onHeld: opened.onWalHeld })
  const file = watchFile(path, clock, () => emptyWal(db))
  const changes = createNotedChanges(db, prepare)
  const people = createPeopleVersions(prepare)
  const commit = createTransaction({
    db,
    clock,
    path,
    checkpoints,
    file,
    beforeCommit() {
      people.follow(changes)
      changes.store()
    },
    afterFailure: error =>
      writeError(
        withoutDamagedSearch(db, error, () => opened.onDamagedSearch?.()),
        path,
      ),
    onBlocked: onTransaction,
  })
  const dependentViews = () => [...dealViews(db), ...reportViews(db)]
  const crmTables =
    opened.crmTables === false
      ? disableCrmTables({ db, prepare, changes, dependentViews })
      : createCrmTables({
          db,
          prepare,
          clock,
          changes,
          transaction: commit,
          dependentViews,
          onChange: onTypedTable,
          onLeftOut,
        })
  const { workspace } = opened
  const store = {
    ...createStore({ db, prepare, clock, commit, changes, crmTables, checkpoints, workspace }),
    /** Closes the database, and releases the lock unless the caller holds it. */
    close() {
      try {
        crmTables.close()
        checkpoints.close()
        if (file.isMoved()) closeMovedDatabase(db)
        else closeDatabase(db)
      } finally {
        release()
      }
    },
  }
  try {
    db.transaction(() => {
      seedResources(prepare)
      fillDictionary(prepare, store.state)
      fillQuestions(prepare, store.state)
      if (store.state.meta(META.identity) === undefined) store.state.setMeta(META.identity, randomUUID())
      const writer: Writer = { pid, command, since: lock.since, inode: identityOf(path)?.ino }
      store.state.setMeta(META.writer, JSON.stringify(writer))
      store.runs.closeInterrupted(isoInstant(clock.now()))
      people.update()
      changes.store()
    }).immediate()
  } catch (error) {
    crmTables.close()
    throw error
  }
  return store
}

function createStore({
  db,
  prepare,
  clock,
  commit,
  changes,
  crmTables,
  checkpoints,
  workspace,
}: {
  db: Sqlite
  prepare: Prepare
  clock: Clock
  commit: Transaction
  changes: NotedChanges
  crmTables: CrmTables
  checkpoints: Pick<Checkpoints, 'ask'>
  workspace: WantedWorkspace | undefined
}) {
  const freshness = createFreshness()
  const suspicions = createSuspicions(prepare)
  const purgeQueue = createPurgeQueue(prepare)
  const rows = createRowWriters(prepare, purgeQueue)
  const merge = createMessageMerge(prepare, purgeQueue)
  const state = createState(prepare)
  const rounds = createRounds({ prepare, state, now: () => isoInstant(clock.now()) })
  const stored = createStoredRows(prepare)
  const segments = createSegments(prepare)
  const claim = createWorkspaceRecorder(state, workspace)
  const checkpoint = (): Promise<void> => {
    const done = checkpoints.ask()
    // It runs after the next commit, even an empty or failed one.
    commit(() => undefined).catch(() => undefined)
    return done
  }

  const olderAnswers = createOlderAnswers(prepare)
  const write = createWrite({
    suspicions,
    olderAnswers,
    purgeQueue,
    freshness,
    rows,
    merge,
    note: createHistory(prepare),
    stored,
    claim,
  })

  return {
    /** The database file. */
    path: db.name,
    db,
    prepare,
    freshness,
    dueClock: createDueClock(clock, state),
    suspicions,
    rows,
    rowTimes: createRowTimes(prepare),
    stored,
    pending: createPendingRows(prepare),
    gates: createGates(prepare),
    links: createLinks(prepare),
    crmFields: createCrmFieldReader(prepare),
    /** Fields whose values are keys of other rows. */
    relations: createCrmFieldReader(prepare, { relationsOnly: true }),
    merge,
    write,
    segments,
    seen: createSeen(prepare),
    tasks: createTasks(prepare),
    associationTasks: createAssociationTasks(prepare),
    lookupTasks: createLookupTasks(prepare),
    arrivals: createLagHistogram(prepare),
    maintenance: createMaintenance(db, prepare),
    rejects: createRejects(prepare),
    requests: createRequests(prepare),
    resync: createResync({ prepare, segments, rounds }),
    rounds,
    minutes: createMinuteCounts(prepare),
    days: createDays(prepare),
    publications: createPublications(prepare),
    runs: createRuns(prepare),
    state,
    ...createTombstones({ prepare, suspicions, merge, purgeQueue, freshness }),
    transcripts: createTranscripts(prepare, rows),
    purger: createPurger({
      db,
      prepare,
      state,
      transaction: commit,
      checkpoint,
      rebuild: signal => rebuildFile(db, signal),
    }),
    reports: createReports({ db, prepare, clock, changes, transaction: commit, commits: commit.commits }),
    crmTables,
    transaction: Object.assign(<T>(work: () => T) => commit(withCrmTables(work, crmTables)), commit, {
      aside: <T>(work: () => T) => commit.aside(withCrmTables(work, crmTables)),
    }),
    /** For synchronous work before a request, such as planning. */
    attempt: <T>(work: () => T) => commit.attempt(withCrmTables(work, crmTables)),
    waitUntilFree: commit.waitUntilFree,
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
