import { PUBLICATIONS } from '../../publications.ts'
import type { ClickHouseConnection } from '../connection.ts'
import { folderOfSource } from '../layout.ts'
import { countParts, formOf, type Relation, readRelations, type StoredPart } from '../state.ts'
import type { DatabasePlace } from '../statements.ts'
import { viewNamesOf } from '../views.ts'
import { type DatabaseVerifyFault, type HintPlace, hintFor } from './fault.ts'
import { readShown, type ShownParts } from './shown-parts.ts'

/** Tells faults from the work of a publication that went on meanwhile, and finds views that are missing. */

/** A view of parley has its digest in its definition. Views that need several tables may rightly be missing. */
export function viewFaults(
  hints: HintPlace,
  { publication, parts }: ShownParts,
  relations: ReadonlyMap<string, Relation>,
): DatabaseVerifyFault[] {
  const current = parts.filter(row => row.publication === publication?.publication)
  const folders = new Set([...current.map(({ source }) => folderOfSource(source) ?? source), PUBLICATIONS])
  return [...folders].flatMap(folder =>
    viewNamesOf(folder)
      .filter(view => (relations.has(view) ? relations.get(view)?.digest === '' : view === folder))
      .map(
        (view): DatabaseVerifyFault => ({
          table: folder,
          part: null,
          source: view,
          written_in: null,
          kind: 'view',
          message: relations.has(view)
            ? 'The view is not the one that parley created'
            : 'The view is missing',
          hint: hintFor(hints, 'view', { source: view, part: '', writtenIn: undefined }),
        }),
      ),
  )
}

/**
 * The faults that the database still has. A publication first notes which publications stay, then removes the lists of the
 * others, and then their rows. So rows that are missing are a fault only if a list that stays names them afterwards.
 */
export async function lastingFaults(
  { connection, ...hints }: HintPlace & { connection: ClickHouseConnection },
  faults: readonly DatabaseVerifyFault[],
): Promise<DatabaseVerifyFault[]> {
  if (faults.length === 0) return []
  const { place } = hints
  const relations = await readRelations(connection, place)
  const shown = await readShown(connection, place, relations)
  const views = new Set(viewFaults(hints, shown, relations).map(({ source }) => source))
  const listed = new Set(shown.parts.map(row => formOf(row.source, row.part, row.written_in)))
  const stored = await storedForms(connection, place, relations, faults)
  return faults.filter(fault => {
    switch (fault.kind) {
      case 'view':
        return views.has(fault.source)
      case 'unreadable':
        return relations.has(fault.source)
      case 'erased':
        return stored.has(keyOf(fault))
      default:
        return listed.has(keyOf(fault))
    }
  })
}

const keyOf = ({ source, part, written_in }: DatabaseVerifyFault): string =>
  formOf(source, part ?? '', written_in ?? 0)

/** The parts that the server has, of tables in which purged content was found. */
async function storedForms(
  connection: ClickHouseConnection,
  place: DatabasePlace,
  relations: ReadonlyMap<string, Relation>,
  faults: readonly DatabaseVerifyFault[],
): Promise<ReadonlySet<string>> {
  const erased = faults.filter(({ kind }) => kind === 'erased').map(({ source }) => source)
  const sources = [...new Set(erased)].filter(source => relations.has(source))
  const parts: StoredPart[] = await countParts(connection, place, sources)
  return new Set(parts.map(({ source, part, writtenIn }) => formOf(source, part, writtenIn)))
}
