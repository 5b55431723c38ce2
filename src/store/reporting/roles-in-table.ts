import { CRM_ROLES, type CrmRoles, type RoleObject } from '../../config/crm-roles.ts'
import { type CrmCell, type CrmForm, cellOf, formOf } from '../crm/columns.ts'
import { createCrmFieldReader } from '../crm/sql.ts'
import { hasTable } from '../database/existing-tables.ts'
import { idIn, literal, quote } from '../database/sql.ts'
import type { Sqlite } from '../database/sqlite-types.ts'

/**
 * SQL for the values of roles in the live records of a CRM object: from its typed table, or from the JSON of its
 * records.
 */

export interface RecordSource {
  object: string
  /** SQL after FROM, with the records as `t`. */
  from: string
  /** The same, with live records only. */
  live: string
  /** SQL for the value of a field, of whatever type; undefined when records have no such field. */
  column(field: string): string | undefined
  formOf(field: string): CrmForm
  /** An earlier value of a field, as the field's column would store it. */
  cell(field: string, value: unknown): CrmCell
  /** The table of the records, and the column by which `NotedChanges` identifies a record. */
  noted: { table: string; column: string }
}

/** @param object missing when no object of the CRM holds such records */
export function recordSource(db: Sqlite, object: string | null | undefined): RecordSource | undefined {
  if (object === null || object === undefined) return undefined
  const fields = new Map(
    createCrmFieldReader(sql => db.prepare(sql))(object).map(field => [field.name, field] as const),
  )
  const form = (name: string): CrmForm => {
    const field = fields.get(name)
    return field?.isRelation ? 'relation' : formOf(field?.type ?? null)
  }
  const table = db
    .prepare<unknown[], string | null>('SELECT table_name FROM crm_objects WHERE name = ?')
    .pluck()
    .get(object)
  if (table && hasTable(db, table)) {
    return {
      object,
      from: `${quote(table)} t WHERE true`,
      live: `${quote(table)} t WHERE t._deleted_at IS NULL`,
      column(field) {
        const name = fields.get(field)?.column
        return name ? `t.${quote(name)}` : undefined
      },
      formOf: form,
      cell: (field, value) => cellOf(form(field), value),
      noted: { table, column: 'id' },
    }
  }
  return {
    object,
    from: `crm_records t WHERE t.object = ${literal(object)}`,
    live: `crm_records t WHERE t.object = ${literal(object)} AND t._deleted_at IS NULL`,
    column: field =>
      fields.has(field) && !/["\\]/.test(field) ? `t.fields ->> ${literal(`$."${field}"`)}` : undefined,
    formOf: form,
    cell: (_, value) => jsonCell(value),
    noted: { table: 'crm_records', column: '_id' },
  }
}

/** The cell that SQLite's `->>` returns for this value in the JSON of a record. */
function jsonCell(value: unknown): CrmCell {
  if (value === null || value === undefined) return null
  if (typeof value === 'boolean') return Number(value)
  return cellOf(typeof value === 'number' ? 'number' : 'text', value)
}

/**
 * SQL for the local day of an instant, which may be a query; NULL for an instant outside of the calendar. The innermost
 * query reads one row of the index: as a join it would read all days.
 */
export const localDay = (instant: string): string =>
  `(SELECT (SELECT c.day FROM calendar c WHERE c.utc_from <= i.instant AND c.utc_to > i.instant
      ORDER BY c.utc_from DESC LIMIT 1)
    FROM (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', ${instant}) AS instant) i)`

/**
 * SQL for the day at the start of a text; NULL unless it is a day of the calendar from the year 1 on. For February 30
 * SQLite's `date` returns a day of March, and older versions do so only where a modifier makes them compute.
 */
const realDay = (text: string): string =>
  `CASE WHEN date(substr(${text}, 1, 10), '+0 days') = substr(${text}, 1, 10) AND ${text} >= '0001' THEN substr(${text}, 1, 10) END`

/** SQL for the local day of a text that may be no instant. SQLite's functions also accept 24:59. */
const realLocalDay = (text: string): string =>
  `CASE WHEN ${realDay(text)} IS NOT NULL AND substr(${text}, 12, 8) <= '24:00:00' THEN ${localDay(text)} END`

/**
 * SQL for a number as REAL. NULL for one beyond the range of a double, and for a text that is more than a number, such as
 * `1,234.50`, of which CAST alone would take the 1. A comparison with a REAL converts a text only as a whole, but with
 * spaces around it, which typed tables do not accept.
 */
export const finiteReal = (value: string): string =>
  `CAST(CASE WHEN ${value} BETWEEN CAST(${-Number.MAX_VALUE} AS REAL) AND CAST(${Number.MAX_VALUE} AS REAL)
    AND ${value} GLOB '[-0-9]*' AND ${value} GLOB '*[0-9]' THEN ${value} END AS REAL)`

/**
 * By role: SQL for the role's value, with the type that the role has in every workspace. NULL for a role without a
 * field.
 */
export function roleValues<O extends RoleObject>(
  role: O,
  source: Pick<RecordSource, 'column' | 'formOf'> | undefined,
  chosen: Readonly<Record<string, string | null | undefined>>,
): Record<string & keyof (typeof CRM_ROLES)[O], string> {
  const values = Object.entries(CRM_ROLES[role] as CrmRoles).map(([name, { kinds }]) => {
    const field = chosen[name]
    const value = field == null ? undefined : source?.column(field)
    return [
      name,
      typed(kinds[0] ?? 'text', value, field == null ? undefined : source?.formOf(field)),
    ] as const
  })
  return Object.fromEntries(values) as Record<string & keyof (typeof CRM_ROLES)[O], string>
}

function typed(kind: string, value: string | undefined, form: CrmForm | undefined): string {
  if (value === undefined)
    return kind === 'number' || kind === 'boolean' ? 'CAST(NULL AS REAL)' : 'CAST(NULL AS TEXT)'
  if (kind === 'number') return finiteReal(value)
  if (kind === 'boolean')
    return `CASE lower(CAST(${value} AS TEXT)) WHEN '1' THEN 1 WHEN 'true' THEN 1 WHEN '0' THEN 0 WHEN 'false' THEN 0 END`
  if (kind === 'day') return form === 'timestamp' ? realLocalDay(value) : `CAST(${realDay(value)} AS TEXT)`
  if (form === 'relation') return `CAST(${idIn(value)} AS TEXT)`
  return `CAST(nullif(trim(CAST(${value} AS TEXT)), '') AS TEXT)`
}
