import type { DatabaseVerifySummary } from '../publish/clickhouse/verify/verify.ts'
import type { VerifyFault } from '../publish/verify/fault.ts'
import type { VerifySummary } from '../publish/verify/verify.ts'
import { sizeText } from '../size-text.ts'
import { type TableColumn, table } from '../terminal/table.ts'
import { countText, durationText } from '../terminal/wording.ts'
import { wholeNumber } from '../whole-number.ts'
import { shortTableName } from './table-progress.ts'

/** What `parley publish verify` prints. Pure. */

type VerifiedTable = VerifySummary['tables'][number]
type VerifiedDatabaseTable = DatabaseVerifySummary['tables'][number]

/** What the tables of both kinds of targets have. */
type AnyTable = Pick<VerifiedTable, 'rows' | 'bytes' | 'parts_changed'>

const SIZE_COLUMNS: readonly TableColumn<AnyTable>[] = [
  { title: 'rows', align: 'right', cell: row => wholeNumber(row.rows) },
  { title: 'size', align: 'right', cell: row => sizeText(row.bytes) },
]

const CHANGE_COLUMNS: readonly TableColumn<AnyTable>[] = [
  { title: 'changed', align: 'right', cell: row => wholeNumber(row.parts_changed) },
]

const COLUMNS: readonly TableColumn<VerifiedTable>[] = [
  { title: 'table', cell: row => shortTableName(row.folder) },
  ...SIZE_COLUMNS,
  { title: 'files', align: 'right', cell: row => wholeNumber(row.files) },
  { title: 'earlier', align: 'right', cell: row => wholeNumber(row.earlier_files) },
  ...CHANGE_COLUMNS,
]

const DATABASE_COLUMNS: readonly TableColumn<VerifiedDatabaseTable>[] = [
  { title: 'table', cell: row => shortTableName(row.table) },
  ...SIZE_COLUMNS,
  { title: 'parts', align: 'right', cell: row => wholeNumber(row.parts) },
  { title: 'earlier', align: 'right', cell: row => wholeNumber(row.earlier_parts) },
  { title: 'unshown', align: 'right', cell: row => wholeNumber(row.unshown_parts) },
  ...CHANGE_COLUMNS,
]

export interface VerifiedPlace {
  target: string
  database: string
  durationMs: number
}

export function filesText(summary: VerifySummary, place: VerifiedPlace): string {
  const { tables, faults } = summary
  const files = sumOf(tables, row => row.files + row.earlier_files)
  return [
    ...table(COLUMNS, tables),
    '',
    ...faults.flatMap(fault => faultLines(fault, fault.file)),
    endLine(summary, place, `what earlier ones keep: ${countText(files, 'file')}`),
    comparedLine(summary, place),
  ].join('\n')
}

export function databaseText(summary: DatabaseVerifySummary, place: VerifiedPlace): string {
  const { tables, faults } = summary
  const parts = sumOf(tables, row => row.parts + row.earlier_parts + row.unshown_parts)
  const counted = sumOf(tables, row => row.counted_parts)
  return [
    ...table(DATABASE_COLUMNS, tables),
    '',
    ...faults.flatMap(fault => {
      const { source, written_in: publication } = fault
      return faultLines(fault, publication === null ? source : `${source} of publication ${publication}`)
    }),
    endLine(summary, place, `all other rows of the server: ${countText(parts, 'part')}`),
    ...(counted === 0 ? [] : [countedLine(counted)]),
    comparedLine(summary, place),
  ].join('\n')
}

const sumOf = <Row>(rows: readonly Row[], of: (row: Row) => number): number =>
  rows.reduce((total, row) => total + of(row), 0)

const faultLines = (
  { table: name, part, message, hint }: Pick<VerifyFault, 'table' | 'part' | 'message' | 'hint'>,
  place: string,
): string[] => [
  `${name}, ${part === null ? '' : `part ${shortTableName(part)}, `}${place}: ${message}.`,
  `  hint: ${hint}`,
]

type AnyVerifySummary = VerifySummary | DatabaseVerifySummary

const endLine = (
  { publication, published_at, faults }: AnyVerifySummary,
  { target, durationMs }: VerifiedPlace,
  others: string,
): string =>
  `Checked publication ${publication} of ${published_at} in ${target}, and ${others} in ${durationText(durationMs)}, ${faults.length === 0 ? 'no fault' : countText(faults.length, 'fault')}.`

const countedLine = (parts: number): string =>
  `An earlier version of parley wrote ${countText(parts, 'part')} without a checksum: only their rows were counted.`

function comparedLine({ compared, tables }: AnyVerifySummary, { database }: VerifiedPlace): string {
  if (!compared)
    return `The warehouse was not compared, and purged rows were not searched for: there is no ${database}.`
  const parts = sumOf(tables, (row: AnyTable) => row.parts_changed)
  return parts === 0
    ? 'No part has changed in the warehouse since.'
    : `${countText(parts, 'part')} changed in the warehouse since. The next publication writes them.`
}
