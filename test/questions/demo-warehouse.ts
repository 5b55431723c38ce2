import type { Change } from '../../src/simulator/changes/change.ts'
import { quote } from '../../src/store/database/sql.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { expectedWarehouse } from '../support/expected.ts'
import type { Cell } from '../support/row-shape.ts'
import { startTrial, type Trial } from '../support/trial.ts'
import { readTruth, type Truth } from '../support/truth.ts'

export type Cells = Readonly<Record<string, Cell>>

/** A warehouse after a backfill, changes at the API and another backfill, with what the API publishes. */
export interface DemoWarehouse {
  file: string
  /** Live rows of a table, computed from what the API publishes without the database. */
  rows(table: string): readonly Cells[]
  /** Live records of one CRM object, with their fields. */
  records(object: string): readonly CrmRecord[]
  /** What the API published before the changes. */
  before: Truth
  after: Truth
  /** Rows of the database, for facts that only parley knows, such as the time of a detection. */
  stored(sql: string): readonly Cells[]
}

export interface CrmRecord {
  id: string
  created_at: string | null
  updated_at: string | null
  fields: Readonly<Record<string, unknown>>
}

/** The simulator's clock begins here. */
export const TODAY = '2026-06-30'

const UNFINISHED = 75

const CHANGES: readonly Change[] = [
  { kind: 'edit', resource: 'crm_records', object: 'deal', count: 12 },
  { kind: 'delete', resource: 'crm_records', object: 'deal', count: 9 },
  { kind: 'delete', resource: 'crm_records', object: 'company', count: 2 },
  { kind: 'delete', resource: 'crm_records', object: 'contact', count: 2 },
  { kind: 'delete', resource: 'messages', count: 60 },
  { kind: 'hide', resource: 'meetings', count: 8 },
  { kind: 'delete', resource: 'meetings', count: 6 },
  { kind: 'delete', resource: 'activities', count: 40 },
  { kind: 'delete', resource: 'members', count: 1 },
  { kind: 'delete', resource: 'playbooks', count: 1 },
  { kind: 'edit', resource: 'playbooks', count: 3 },
  { kind: 'edit', resource: 'meetings', count: 3 },
  { kind: 'publish', resource: 'meetings', count: 12 },
]

/** The same for all files of tests in this process, which only read it. */
export function demoWarehouse(): Promise<DemoWarehouse> {
  demo ??= filledWarehouse()
  return demo
}

let demo: Promise<DemoWarehouse> | undefined

async function filledWarehouse(): Promise<DemoWarehouse> {
  const trial = await startTrial({
    messages: 900,
    meetings: 130,
    deals: 60,
    companies: 20,
    contacts: 50,
    members: 12,
    collections: 4,
    customRecords: 2,
    accessLogs: 200,
    transcriptTurns: 12,
  })
  try {
    await backfilled(trial)
    const before = await readTruth(trial.simulator)
    await trial.simulator.changeAtOnce(CHANGES)
    await backfilled(trial)
    moveToSimulatedDay(trial.database)
    return warehouseOf(trial.database, { before, after: await readTruth(trial.simulator) })
  } finally {
    await trial.close()
  }
}

/** When parley found a row deleted or changed is noted by the clock of the test machine, which is years later. */
function moveToSimulatedDay(file: string): void {
  const db = openSqlite(file)
  const columns = db
    .prepare(
      `SELECT m.name, c.name AS noted FROM sqlite_master m JOIN pragma_table_info(m.name) c
        ON c.name IN ('_deleted_at', '_changed_at') WHERE m.type = 'table'`,
    )
    .all() as { name: string; noted: string }[]
  for (const { name, noted } of columns)
    db.exec(`UPDATE ${quote(name)} SET ${noted} = '${TODAY}' || substr(${noted}, 11)`)
  db.close()
}

/** A run that ends unfinished is run again, as its status asks for. */
async function backfilled(trial: Trial): Promise<void> {
  const first = await trial.backfill()
  const { status, stderr } = first.status === UNFINISHED ? await trial.backfill() : first
  if (status !== 0) throw new Error(`the backfill ended with ${status}: ${stderr.slice(-3000)}`)
}

function warehouseOf(
  file: string,
  { before, after }: Pick<DemoWarehouse, 'before' | 'after'>,
): DemoWarehouse {
  const tables = new Map(expectedWarehouse(after).map(({ table, rows }) => [table, rows.map(plainCells)]))
  const rows = (table: string): readonly Cells[] => {
    const found = tables.get(table)
    if (!found) throw new RangeError(`nothing is expected of the table ${table}`)
    return found
  }
  return {
    file,
    rows,
    records: object =>
      rows('crm_records')
        .filter(row => row['object'] === object)
        .map(recordOf),
    before,
    after,
    stored: sql => {
      const db = openSqlite(file, { readonly: true })
      try {
        return db.prepare(sql).all() as Cells[]
      } finally {
        db.close()
      }
    },
  }
}

/** Cells that may have one of several values have the first. */
function plainCells(row: Readonly<Record<string, Cell | { oneOf: readonly Cell[] }>>): Cells {
  const cells = Object.entries(row).map(([name, cell]) => [
    name,
    cell !== null && typeof cell === 'object' ? (cell.oneOf[0] ?? null) : cell,
  ])
  return Object.fromEntries(cells)
}

function recordOf(row: Cells): CrmRecord {
  return {
    id: String(row['id']),
    created_at: textOf(row['created_at']),
    updated_at: textOf(row['updated_at']),
    fields: JSON.parse(String(row['fields'])),
  }
}

export const textOf = (cell: unknown): string | null => (typeof cell === 'string' ? cell : null)
