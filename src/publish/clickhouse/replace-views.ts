import { createHash } from 'node:crypto'
import type { Prepared } from './prepare.ts'
import { createView } from './statements.ts'
import { allViews } from './views.ts'

/**
 * Creates the views, unless they are as they were. While a publication is not complete, they show the last one, with
 * the columns of the new one.
 * @param before the digest of the views that the database has; undefined when it is not known
 * @returns the digest of the views
 */
export async function replaceViews(
  { connection, place, dialect, tables, existing }: Prepared,
  before: string | undefined,
): Promise<string> {
  const views = allViews(place, dialect, tables)
  const statements = views.flatMap(view => createView(place, view, dialect.isModern))
  const digest = createHash('sha256').update(JSON.stringify(statements)).digest('hex').slice(0, 32)
  if (digest === before && views.every(({ name }) => existing.has(name))) return digest
  for (const statement of statements) await connection.run(statement)
  return digest
}
