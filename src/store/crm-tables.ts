import type { Clock } from '../clock.ts'
import { createCrmNotes } from './crm-notes.ts'
import { isOfTable } from './crm-sql.ts'
import { createCrmTableFilling } from './crm-table-filling.ts'
import { createCrmTableMetadata } from './crm-table-metadata.ts'
import { createCrmTableRows } from './crm-table-rows.ts'
import { createCrmTableStates } from './crm-table-state.ts'
import { dealViews } from './deal-views.ts'
import type { Sqlite } from './open.ts'
import type { Prepare } from './statements.ts'
import { replaceViews } from './views.ts'

/**
 * The records of each CRM object as a table with a column for each field, true to `crm_records` at every commit.
 * When the metadata asks for other columns, a table is made beside the present one, filled in lots, and takes its
 * place: readers see the old one or the new one, both with every record. An object's first table is filled when its
 * list was read to the end: page by page, its indices would be written many times over. A table that cannot be kept is
 * dropped, and made anew when the metadata changes or at the next start; it never fails a sync.
 */
export interface CrmTables {
  /** Brings the tables to what was just written. In the transaction that wrote it, and last in it. */
  follow(): void
  /**
   * Makes and fills what is not yet, a lot a transaction, until all is done or the signal says no: for who has nothing
   * else to do.
   */
  finish(signal?: AbortSignal): Promise<void>
  /** Begins no further lot by itself. */
  close(): void
}

export interface CrmTablesDeps {
  db: Sqlite
  prepare: Prepare
  clock: Pick<Clock, 'elapsed'>
  transaction(work: () => void): Promise<void>
}

/** How long one lot holds the event loop; looked at after each record. */
const LOT_MS = 10
/** The same where nobody has to wait. */
const LONG_LOT_MS = 50

export function createCrmTables({ transaction, ...deps }: CrmTablesDeps): CrmTables {
  const following = createFollowing(deps)
  let isFilling = false
  let isClosed = false

  /** In the background; after a fault of the disk the next transaction that is followed begins it anew. */
  const fillOn = async () => {
    if (isFilling) return
    isFilling = true
    try {
      while (!isClosed && following.isUnfinished()) await transaction(() => following.lot(LOT_MS))
    } catch {
      // A disk that fails here fails whoever writes next as well, who says so.
    } finally {
      isFilling = false
    }
  }

  following.begin()
  void fillOn()
  return {
    follow() {
      following.follow()
      void fillOn()
    },
    async finish(signal) {
      while (!signal?.aborted && following.isUnfinished({ all: true }))
        await transaction(() => following.lot(LONG_LOT_MS, { all: true }))
    },
    close: () => {
      isClosed = true
    },
  }
}

/** What is done in a transaction. A table that fails is given up by itself; nothing else is undone with it. */
function createFollowing({ db, prepare, clock }: Omit<CrmTablesDeps, 'transaction'>) {
  const notes = createCrmNotes(db, prepare)
  const states = createCrmTableStates(prepare)
  const rows = createCrmTableRows({ db, states, notes })
  const metadata = createCrmTableMetadata({ db, prepare, states })
  const filling = createCrmTableFilling({ db, prepare, clock, states, rows })
  const objects = prepare('SELECT name FROM crm_objects ORDER BY name').pluck()

  const attempt = (object: string, work: () => void) => {
    try {
      db.transaction(work)()
    } catch (error) {
      if (!db.inTransaction || !isOfTable(error)) throw error
      db.transaction(() => metadata.drop(object))()
    }
  }

  /** What is small is filled at once. */
  const followMetadata = (names: readonly string[]) => {
    const until = clock.elapsed() + LOT_MS
    for (const object of names) {
      attempt(object, () => {
        metadata.plan(object)
        if (filling.isReady(object) && clock.elapsed() < until) filling.lot(object, until)
        metadata.tell(object)
      })
    }
  }

  return {
    /** What may have happened while no process followed. */
    begin: () =>
      db
        .transaction(() => {
          followMetadata(objects.all() as string[])
          replaceViews(db, dealViews(db))
          notes.clear()
        })
        .immediate(),
    follow() {
      if (!notes.any()) return
      followMetadata(notes.objects())
      for (const object of notes.recordObjects()) attempt(object, () => rows.follow(object))
      notes.clear()
    },
    isUnfinished: (options = { all: false }) => filling.unfinished(options) !== undefined,
    lot(ms: number, options = { all: false }) {
      const object = filling.unfinished(options)
      if (object === undefined) return
      attempt(object, () => {
        if (filling.lot(object, clock.elapsed() + ms)) metadata.tell(object)
      })
    },
  }
}
