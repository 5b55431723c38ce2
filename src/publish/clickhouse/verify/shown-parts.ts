import type { ClickHouseConnection } from '../connection.ts'
import { readParts, readPublications } from '../state.ts'
import type { CompletedRow, PartRow } from '../state-tables.ts'
import type { DatabasePlace } from '../statements.ts'

/** What the complete publications of a database show. */
export interface ShownParts {
  /** Undefined when none is complete. */
  publication: CompletedRow | undefined
  /** Of all complete publications that are kept. */
  parts: readonly PartRow[]
}

/** More publications than `--keep` allows. */
const MOST_PUBLICATIONS = 10_000

/** Another publication may complete, and drop lists of parts, between two statements. */
export async function readShown(connection: ClickHouseConnection, place: DatabasePlace): Promise<ShownParts> {
  for (;;) {
    const publications = await readPublications(connection, place, MOST_PUBLICATIONS)
    const parts = await readParts(connection, place)
    const [newest] = await readPublications(connection, place, 1)
    const publication = publications.at(-1)
    if (newest?.publication !== publication?.publication) continue
    const complete = new Set(publications.map(row => row.publication))
    return { publication, parts: parts.filter(row => complete.has(row.publication)) }
  }
}
