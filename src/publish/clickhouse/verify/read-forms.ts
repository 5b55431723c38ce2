import { nextTurn } from '../../../export/partitions.ts'
import type { PurgedContentTest } from '../../../store/deletions/purged-content.ts'
import type { ClickHouseConnection } from '../connection.ts'
import { brokenAnswer } from '../faults.ts'
import { PART_COLUMN, PUBLICATION_COLUMN } from '../layout.ts'
import { createRowsChecksum, type RowsChecksum } from '../rows-checksum.ts'
import { type ClickHouseColumn, type DatabasePlace, quoted, tableIn } from '../statements.ts'
import { BadRow, createRowDecoder, type DecodedRow, type RowDecoder } from './decode-rows.ts'

/** Reads all rows that the server has of a table, also those that no publication shows. */

export interface SourceReading {
  connection: ClickHouseConnection
  place: DatabasePlace
  signal: AbortSignal
  /** Called from time to time with the number of rows read since the last call. */
  onRows(rows: number): void
}

/** The rows of a part that one publication wrote. */
export interface StoredForm {
  part: string
  writtenIn: number
  rows: number
  checksum: string
  /** Rows with content that was purged. */
  erased: number
}

/**
 * One query, so that the rows are those of one instant. One piece of the answer is in memory at a time. Undefined when
 * the table has columns that parley did not create.
 * @param purgedContent the cells are in the order of the columns
 */
export async function readForms(
  { connection, place, signal, onRows }: SourceReading,
  { source, columns }: { source: string; columns: readonly ClickHouseColumn[] },
  purgedContent: PurgedContentTest | undefined,
): Promise<StoredForm[] | undefined> {
  const decoder = createRowDecoder(columns.map(({ type }) => type))
  const names = columns.map(({ name }) => name)
  const [partAt, publicationAt] = [names.indexOf(PART_COLUMN), names.indexOf(PUBLICATION_COLUMN)]
  if (decoder === undefined || partAt < 0 || publicationAt < 0) return undefined
  const forms = createForms()
  const sql = `SELECT ${names.map(quoted).join(', ')} FROM ${tableIn(place, source)} FORMAT RowBinary`
  for await (const piece of connection.pieces(sql)) {
    let rows = 0
    for (const { cells, bytes } of decoded(connection, decoder, piece)) {
      const form = forms.of(String(cells[partAt]), Number(cells[publicationAt]))
      form.rows += 1
      form.checksum.add(bytes)
      if (purgedContent?.(cells)) form.erased += 1
      rows += 1
    }
    onRows(rows)
    // Signals only arrive between two turns of the event loop.
    await nextTurn()
    if (signal.aborted) throw signal.reason
  }
  if (decoder.rest().length > 0) throw brokenAnswer(connection, decoder.rest())
  return forms.all()
}

function* decoded(
  connection: ClickHouseConnection,
  decoder: RowDecoder,
  piece: Buffer,
): Generator<DecodedRow> {
  try {
    yield* decoder.rows(piece)
  } catch (error) {
    throw error instanceof BadRow ? brokenAnswer(connection, error.bytes) : error
  }
}

interface FormInProgress extends Omit<StoredForm, 'checksum'> {
  checksum: RowsChecksum
}

function createForms(): { of(part: string, writtenIn: number): FormInProgress; all(): StoredForm[] } {
  const forms = new Map<string, FormInProgress>()
  return {
    of(part, writtenIn) {
      const key = `${writtenIn} ${part}`
      const known = forms.get(key)
      if (known) return known
      const form = { part, writtenIn, rows: 0, checksum: createRowsChecksum(), erased: 0 }
      forms.set(key, form)
      return form
    },
    all: () => [...forms.values()].map(form => ({ ...form, checksum: form.checksum.value() })),
  }
}
