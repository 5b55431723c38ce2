import { TABLES } from '../catalog.ts'
import type { CrmField } from './crm-columns.ts'
import { quote } from './sql.ts'

/** What people call the things that a CRM relation points at, as SQL: the id where no name is known. Pure. */

/** Where records have their names. The API does not state it; the first of these that is there and not empty counts. */
const NAME_FIELDS = ['name', 'full_name', 'display_name', 'label', 'title']

/** Resources of the API whose rows have an id and a name. */
const NAMED_RESOURCES: ReadonlySet<string> = new Set(
  [...TABLES.values()].flatMap(({ table }) =>
    table.kind === 'entity' && table.key.join() === 'id' && 'name' in table.columns ? [table.name] : [],
  ),
)

/** @param id SQL of the id */
export function nameOfTarget({ target }: Pick<CrmField, 'target'>, id: string): string {
  if (target === undefined) return id
  const { object, resource } = target
  if (resource !== null && NAMED_RESOURCES.has(resource)) {
    return `coalesce((SELECT nullif(n.name, '') FROM ${quote(resource)} n WHERE n.id = ${id}), ${id})`
  }
  // SQL text ends at a NUL.
  if (object === null || object.includes('\u0000')) return id
  const fields = NAME_FIELDS.map(field => `nullif(n.fields ->> '${field}', '')`).join(', ')
  const name = `SELECT coalesce(${fields}) FROM crm_records n WHERE n.object = '${object.replaceAll("'", "''")}' AND n.id = ${id}`
  return `coalesce((${name}), ${id})`
}
