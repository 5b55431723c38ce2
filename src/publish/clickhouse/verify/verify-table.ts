import type { Clock } from '../../../clock.ts'
import type { Sqlite } from '../../../store/database/sqlite-types.ts'
import { readPartDigests } from '../../part-digests.ts'
import type { PublishedTable } from '../../tables.ts'
import { differences } from '../../verify/verify-table.ts'
import { formOf, readColumns } from '../state.ts'
import type { CheckedPart } from './compare-forms.ts'
import { type DatabaseVerifyFault, type HintPlace, hintFor } from './fault.ts'
import type { SourceReading, StoredForm } from './read-forms.ts'
import type { ShownParts } from './shown-parts.ts'
import { verifySource } from './verify-source.ts'

/** Checks one published table: all tables of the database that have rows of it, and its parts against the warehouse. */

export interface SourceTableCheck extends SourceReading, HintPlace {
  clock: Clock
  /** Undefined: the database is checked alone. */
  warehouse: { db: Sqlite; table: PublishedTable | undefined } | undefined
  shown: ShownParts
  /** The newest publication that had begun before the warehouse was read. */
  newest: number
}

export interface DatabaseTable {
  /** The published table. */
  table: string
  /** Of the last complete publication. */
  rows: number
  /** As they were sent. */
  bytes: number
  parts: number
  /** Parts that only earlier publications show. They are checked too. */
  earlier_parts: number
  /** Parts that no publication shows, such as those of an interrupted one. Only purged content is searched for in them. */
  unshown_parts: number
  /** Shown parts that an earlier version of parley wrote without a checksum: only their rows were counted. */
  counted_parts: number
  /** Parts that differ from the warehouse: they changed since, and the next publication writes them. */
  parts_changed: number
}

export interface SourceTableFindings {
  table: DatabaseTable
  faults: readonly DatabaseVerifyFault[]
}

/** @param sources the tables that have rows of the published table, also those that are missing */
export async function verifyTable(
  check: SourceTableCheck,
  folder: string,
  sources: readonly string[],
): Promise<SourceTableFindings> {
  const { connection, shown, warehouse, newest } = check
  const columns = await readColumns(connection, sources)
  const faults: DatabaseVerifyFault[] = []
  const stored: (StoredForm & { source: string })[] = []
  for (const source of sources) {
    const found = await verifySource(check, {
      source,
      columns: columns.get(source) ?? [],
      shown: shown.parts.filter(row => row.source === source),
      warehouse,
      newest,
    })
    stored.push(...found.stored.map(form => ({ ...form, source })))
    for (const { part, writtenIn, kind, message } of found.faults)
      faults.push({
        table: folder,
        part: part === '' ? null : part,
        source,
        written_in: writtenIn ?? null,
        kind,
        message,
        hint: hintFor(check, kind, { source, part, writtenIn }),
      })
  }
  const parts = shown.parts.filter(({ source }) => sources.includes(source))
  const current = parts.filter(row => row.publication === shown.publication?.publication)
  return {
    table: {
      table: folder,
      ...figures(parts, current, stored),
      parts_changed: await changedParts(check, current),
    },
    faults,
  }
}

function figures(
  parts: readonly CheckedPart[],
  current: readonly CheckedPart[],
  stored: readonly (StoredForm & { source: string })[],
): Omit<DatabaseTable, 'table' | 'parts_changed'> {
  const forms = new Map(parts.map(row => [formOf(row.source, row.part, row.written_in), row]))
  const isShown = ({ source, part, writtenIn }: (typeof stored)[number]) =>
    forms.has(formOf(source, part, writtenIn))
  const sum = (figure: 'rows' | 'bytes') => current.reduce((total, row) => total + row[figure], 0)
  return {
    rows: sum('rows'),
    bytes: sum('bytes'),
    parts: current.length,
    earlier_parts: forms.size - current.length,
    unshown_parts: stored.filter(form => !isShown(form)).length,
    counted_parts: [...forms.values()].filter(({ checksum }) => checksum === undefined).length,
  }
}

/** How many parts of the table and of the warehouse differ. */
async function changedParts(check: SourceTableCheck, current: readonly CheckedPart[]): Promise<number> {
  const { db, table } = check.warehouse ?? {}
  if (db === undefined) return 0
  if (table === undefined) return current.length
  const parts = current.map(({ part, digest }) => ({ part: part === '' ? null : part, digest }))
  const reader = table.reader(
    db,
    parts.map(({ part }) => part),
  )
  return differences(parts, await readPartDigests(check, table, reader.rows('all')))
}
