import { EXIT_STATUS, StopError } from '../../errors.ts'
import type { Prepared } from './prepare.ts'
import {
  dropPartLists,
  dropParts,
  keptPublications,
  unneededParts,
  unneededSources,
  unneededViews,
} from './removal.ts'
import { countParts, type DatabaseState, newestAttempt, type StoredPart } from './state.ts'
import { createView, dropTable, dropView } from './statements.ts'
import { publishedView } from './views.ts'

/** Removes what no kept publication shows. */

export interface CompletedPublication extends Prepared {
  publication: number
  /** With the publication. */
  state: DatabaseState
  /** As of its begin. */
  stored: readonly StoredPart[]
}

/**
 * Returns the number of parts that were removed. If a later publication has begun, nothing is removed: it may show parts
 * that this one does not, and it removes what neither needs.
 */
export async function removeUnneeded(completed: CompletedPublication, keep: number): Promise<number> {
  const { connection, place, state, stored, publication } = completed
  if ((await newestAttempt(connection, place)) !== publication) return 0
  const purgedAt = state.publications.at(-1)?.purged_at ?? ''
  const kept = keptPublications(state.publications, keep, purgedAt)
  const unneeded = unneededParts(stored, state, kept, publication)
  for (const statement of dropParts(place, unneeded)) await connection.run(statement)
  const dropped = await removeTables(completed, kept)
  const isErasing = state.publications.some(({ purged_at }) => purged_at !== purgedAt)
  if (isErasing && unneeded.length > 0) await checkErased(completed, kept, dropped)
  for (const statement of dropPartLists(place, state.parts, kept)) await connection.run(statement)
  return unneeded.length
}

/** Views stop to read a table before it goes. Returns the names of the tables. */
async function removeTables(
  { connection, place, dialect, tables, views, relations, state }: CompletedPublication,
  kept: ReadonlySet<number>,
): Promise<ReadonlySet<string>> {
  const { isModern } = dialect
  const current = new Set(tables.map(({ layout }) => layout.name))
  const unneeded = new Set(unneededSources(relations, current, state, kept))
  const shortened = tables.filter(viewed => viewed.earlier.some(({ name }) => unneeded.has(name)))
  const statements = [
    ...unneededViews(relations, views).map(name => dropView(place, name, isModern)),
    ...shortened.flatMap(viewed => {
      const earlier = viewed.earlier.filter(({ name }) => !unneeded.has(name))
      return createView(place, publishedView(place, dialect, { ...viewed, earlier }), isModern)
    }),
    ...[...unneeded].flatMap(name => dropTable(place, name, isModern)),
  ]
  for (const statement of statements) await connection.run(statement)
  return unneeded
}

/** Rows with purged content must be gone from the server, and not only from the views. */
async function checkErased(
  { connection, place, stored, state, publication }: CompletedPublication,
  kept: ReadonlySet<number>,
  dropped: ReadonlySet<string>,
): Promise<void> {
  const sources = [...new Set(stored.map(({ source }) => source))].filter(source => !dropped.has(source))
  const now = await countParts(connection, place, sources)
  const [left] = unneededParts(now, state, kept, publication)
  if (left === undefined) return
  throw new StopError(`${connection.name} still has rows of ${left.source} that were purged`, {
    code: 'publish-not-erased',
    hint: 'The publication is complete, but another one must remove these rows: run parley publish again. If it fails again, check the log of the server.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
