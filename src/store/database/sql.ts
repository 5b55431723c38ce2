import type { Table } from '../../declare/table.ts'

/** A name as a quoted SQL identifier. Names from the API are untrusted, so quotes inside them are doubled. */
export function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** A text as an SQL literal. A NUL, at which SQLite ends a statement, is replaced: the text then matches nothing. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''").replaceAll('\0', '\uFFFD')}'`
}

export function placeholders(count: number): string {
  return Array.from({ length: count }, () => '?').join(', ')
}

/** The condition that these columns have the bound values. */
export function isRow(columns: readonly string[]): string {
  return columns.map(column => `${quote(column)} = ?`).join(' AND ')
}

/** The condition that a row of the table is live. Only entity tables keep deleted rows. */
export function isLive({ kind }: Pick<Table, 'kind'>): string {
  return kind === 'entity' ? '_deleted_at IS NULL' : 'true'
}

/** SQL that turns an id as the CRM sent it into the id of a row: UUIDs are in lower case. */
export const idIn = (value: string): string =>
  `CASE WHEN length(${value}) = 36 AND ${value} LIKE '________-____-____-____-____________' THEN lower(${value}) ELSE ${value} END`
