import type { ClickHouseConnection } from '../connection.ts'
import { formOf, readParts, readPublications } from '../state.ts'
import { type ChecksumRow, type CompletedRow, STATE_TABLES } from '../state-tables.ts'
import { type DatabasePlace, tableIn } from '../statements.ts'
import type { CheckedPart } from './compare-forms.ts'

/** What the complete publications of a database show. */
export interface ShownParts {
  /** Undefined when none is complete. */
  publication: CompletedRow | undefined
  /** Of all complete publications that are kept. */
  parts: readonly CheckedPart[]
}

/** More publications than `--keep` allows. */
const MOST_PUBLICATIONS = 10_000

/**
 * Another publication may complete, and drop lists of parts, between two statements.
 * @param tables of the database: one of an earlier version of parley lacks some
 */
export async function readShown(
  connection: ClickHouseConnection,
  place: DatabasePlace,
  tables: Pick<ReadonlyMap<string, unknown>, 'has'>,
): Promise<ShownParts> {
  for (;;) {
    const publications = await readPublications(connection, place, MOST_PUBLICATIONS)
    const parts = await readParts(connection, place)
    const [newest] = await readPublications(connection, place, 1)
    const publication = publications.at(-1)
    if (newest?.publication !== publication?.publication) continue
    const oldest = tables.has(STATE_TABLES.kept) ? await oldestKept(connection, place) : 0
    const kept = new Set(publications.flatMap(row => (row.publication < oldest ? [] : row.publication)))
    const shown = parts.filter(row => kept.has(row.publication))
    const checksums = tables.has(STATE_TABLES.checksums)
      ? await readChecksums(connection, place)
      : new Map<string, string>()
    return {
      publication,
      parts: shown.map(row => ({
        ...row,
        checksum: checksums.get(formOf(row.source, row.part, row.written_in)),
      })),
    }
  }
}

/** The earliest publication of which nothing was ever removed. */
async function oldestKept({ rows }: ClickHouseConnection, place: DatabasePlace): Promise<number> {
  const [row] = await rows<{ oldest: string }>(
    `SELECT max(oldest) AS oldest FROM ${tableIn(place, STATE_TABLES.kept)}`,
  )
  return Number(row?.oldest ?? 0)
}

async function readChecksums(
  { rows }: ClickHouseConnection,
  place: DatabasePlace,
): Promise<ReadonlyMap<string, string>> {
  const found = await rows<Record<keyof ChecksumRow, string>>(
    `SELECT written_in, source, part, checksum FROM ${tableIn(place, STATE_TABLES.checksums)}`,
  )
  return new Map(
    found.map(({ written_in, source, part, checksum }) => [
      formOf(source, part, Number(written_in)),
      checksum,
    ]),
  )
}
