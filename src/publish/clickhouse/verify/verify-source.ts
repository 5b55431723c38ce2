import { errorCode } from '../../../error-code.ts'
import type { Sqlite } from '../../../store/database/sqlite-types.ts'
import { purgedContentTest } from '../../../store/deletions/purged-content.ts'
import type { PublishedTable } from '../../tables.ts'
import type { ClickHouseColumn } from '../statements.ts'
import { type CheckedPart, type FormFault, formFaults } from './compare-forms.ts'
import { readForms, type SourceReading, type StoredForm } from './read-forms.ts'

/** Checks one table that has rows of a published table: all of its rows, whether a publication shows them or not. */

export interface SourceToCheck {
  source: string
  /** None where the server has no such table. */
  columns: readonly ClickHouseColumn[]
  /** The parts of it that complete publications show. */
  shown: readonly CheckedPart[]
  /** The warehouse and its table, if it still has one. */
  warehouse: { db: Sqlite; table: PublishedTable | undefined } | undefined
  /** The newest publication that had begun before the warehouse was read. */
  newest: number
}

export interface SourceFindings {
  stored: readonly StoredForm[]
  faults: readonly FormFault[]
}

export async function verifySource(reading: SourceReading, check: SourceToCheck): Promise<SourceFindings> {
  const { columns, shown, newest } = check
  const read = columns.length === 0 ? [] : await readOrFault(reading, check)
  if ('kind' in read) return { stored: [], faults: [read] }
  return { stored: read, faults: formFaults(shown, read, newest) }
}

async function readOrFault(
  reading: SourceReading,
  { source, columns, warehouse }: SourceToCheck,
): Promise<StoredForm[] | FormFault> {
  const { db, table } = warehouse ?? {}
  const names = columns.map(({ name }) => name)
  const purgedContent = db && table && purgedContentTest(db, table.read.name, names)
  const unreadable = (message: string): FormFault => ({
    part: '',
    writtenIn: undefined,
    kind: 'unreadable',
    message,
  })
  try {
    return (
      (await readForms(reading, { source, columns }, purgedContent)) ??
      unreadable('The table has columns that parley did not create')
    )
  } catch (error) {
    // Another publication may have dropped it.
    if (errorCode(error) === 'publish-no-table') return []
    if (errorCode(error) === 'publish-corrupt')
      return unreadable('The server cannot read the rows of the table')
    throw error
  }
}
