import { TABLES } from '../catalog/catalog.ts'
import { chosenTable, chosenTables, isSameName } from '../export/chosen-tables.ts'
import { exportedCrmTables, folderOfTable } from '../export/crm-tables.ts'
import { type ExportColumn, type ExportTable, presentTables } from '../export/export-tables.ts'
import type { Partition } from '../export/partitions.ts'
import { nameFor } from '../store/crm/sql.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { columnsWithFields, namesForReaders, type PartitionColumn } from './iceberg/iceberg-schema.ts'
import type { TableMetadata } from './iceberg/metadata.ts'
import { createPartReader, type PartReader } from './row-ranges.ts'

/** A table of a publication, derived from a table of an export. */
export interface PublishedTable {
  /** The table as it is read from the warehouse. */
  read: ExportTable
  /** The table as its files are written: with a column for the partition if its time is in another table. */
  written: ExportTable
  partition: PartitionColumn | undefined
  /** Whether other tables have rows that belong to its rows. A reader that finds a row here also finds those rows. */
  isOwner: boolean
  /** @param known the parts of the last publication */
  reader(db: Sqlite, known: readonly Partition[]): PartReader
}

/** The month of the row that owns a row, such as the meeting of a transcript entry. */
export const OWNERS_MONTH = '_month'

const OWNERS_MONTH_COLUMN: ExportColumn = {
  name: OWNERS_MONTH,
  kind: 'text',
  doc: 'The month of the time of the row that owns this one, such as the meeting of a transcript entry: the partition.',
}

/**
 * @param names the tables to publish; undefined: all
 * @throws StopError (exit status 64) for a name that no table has or may get
 */
export function publishedTables(
  db: Sqlite,
  names?: readonly string[] | undefined,
): readonly PublishedTable[] {
  return chosenTables(tablesIn(db), names, isComingIn(db)).map(publishedTable)
}

const tablesIn = (db: Sqlite): readonly ExportTable[] => [...presentTables(db), ...exportedCrmTables(db)]

/**
 * Whether a table may appear under a name: the typed table of a CRM object appears once its records were read. Until
 * the list of objects was read to its end, any name that begins with `crm_` may get a table.
 */
function isComingIn(db: Sqlite): (name: string) => boolean {
  if (!areObjectsKnown(db)) return name => /^crm_/i.test(name)
  const objects = db.prepare<unknown[], string>('SELECT name FROM crm_objects').pluck().all()
  const names = objects.map(nameFor).flatMap(table => [table, folderOfTable(table)])
  return name => names.some(one => isSameName(one, name))
}

const areObjectsKnown = (db: Sqlite): boolean =>
  db
    .prepare("SELECT 1 FROM sync_resources WHERE resource = 'crm_objects' AND first_complete_at IS NOT NULL")
    .get() !== undefined

/** @returns the names that no table has */
export function namesWithoutTable(db: Sqlite, names: readonly string[]): readonly string[] {
  const all = tablesIn(db)
  return names.filter(name => chosenTable(name, all) === undefined)
}

function publishedTable(exported: ExportTable): PublishedTable {
  const read = { ...exported, columns: columnsForReaders(exported.columns) }
  const reader: PublishedTable['reader'] = (db, known) => createPartReader(db, read, known)
  const { time } = read.rows
  const isOwner = TABLES.get(read.name)?.table.kind === 'entity'
  const table = { read, written: read, partition: undefined, isOwner, reader }
  if (time === undefined) return table
  if (read.columns.some(({ name }) => name === time.column))
    return { ...table, partition: { name: time.column, transform: 'month' } }
  const written = { ...read, columns: [...read.columns, OWNERS_MONTH_COLUMN] }
  return { ...table, written, partition: { name: OWNERS_MONTH, transform: 'identity' } }
}

function columnsForReaders(columns: readonly ExportColumn[]): ExportColumn[] {
  const names = namesForReaders(columns.map(({ name }) => name))
  return columns.map((column, place) => {
    const { name, source = name } = column
    return { ...column, name: names[place] ?? name, source }
  })
}

/**
 * The property with the name of the table in the warehouse, which may have characters that its folder cannot have.
 * Metadata of earlier versions do not have it.
 */
export const TABLE_PROPERTY = 'parley.table'

/**
 * A table of the target that is no longer published, such as that of a deleted CRM object. It is published without
 * rows, so that it does not look current. Its files go with the publications that show them.
 */
export function droppedTable(folder: string, metadata: TableMetadata): PublishedTable {
  const schema = metadata.schemas.find(one => one['schema-id'] === metadata['current-schema-id'])
  const read: ExportTable = {
    name: metadata.properties[TABLE_PROPERTY] ?? folder,
    folder,
    resource: null,
    columns: columnsWithFields(schema?.fields ?? []),
    rows: { from: '', order: '' },
  }
  const [field] = metadata['partition-specs'][0]?.fields ?? []
  const source = schema?.fields.find(({ id }) => id === field?.['source-id'])
  return {
    read,
    written: read,
    partition: field && source && { name: source.name, transform: field.transform },
    isOwner: false,
    reader: () => ({ rows: () => [], of: () => [], noted: () => 'all', compare: () => 0 }),
  }
}
