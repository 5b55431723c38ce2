import { TABLES } from '../../catalog/catalog.ts'
import { quote } from '../database/sql.ts'
import type { CrmField } from './columns.ts'

/** SQL for the name of a relation's target, or its id when no name is known. Pure. */

/** Fields that may hold a record's name. The API does not document which field does; the first non-empty one counts. */
export const NAME_FIELDS = ['name', 'full_name', 'display_name', 'label', 'title']

/** Resources of the API whose rows have an id and a name. */
export const NAMED_RESOURCES: ReadonlySet<string> = new Set(
  [...TABLES.values()].flatMap(({ table }) =>
    table.kind === 'entity' && table.key.join() === 'id' && 'name' in table.columns ? [table.name] : [],
  ),
)

/** @param id SQL for the id of the target */
export function nameOfTarget({ target }: Pick<CrmField, 'target'>, id: string): string {
  if (target === undefined) return id
  const { object, resource } = target
  if (resource !== null && NAMED_RESOURCES.has(resource)) {
    return `coalesce((SELECT nullif(n.name, '') FROM ${quote(resource)} n WHERE n.id = ${id}), ${id})`
  }
  // SQLite ends SQL text at a NUL, so this object cannot be named in it.
  if (object === null || object.includes('\u0000')) return id
  const fields = NAME_FIELDS.map(field => `nullif(n.fields ->> '${field}', '')`).join(', ')
  const name = `SELECT coalesce(${fields}) FROM crm_records n WHERE n.object = '${object.replaceAll("'", "''")}' AND n.id = ${id}`
  return `coalesce((${name}), ${id})`
}
