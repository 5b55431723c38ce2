import type { Prepared } from './prepare.ts'
import { createView, viewDigest } from './statements.ts'

/**
 * Creates the views that are not as they should be. While the publication is not complete, they show the last one, with
 * the columns of the new one.
 */
export async function replaceViews({
  connection,
  place,
  dialect,
  views,
  relations,
}: Prepared): Promise<void> {
  for (const view of views) {
    if (relations.get(view.name)?.digest === viewDigest(view)) continue
    for (const statement of createView(place, view, dialect.isModern)) await connection.run(statement)
  }
}
