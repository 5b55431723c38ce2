import type { ItemFeed } from '../../declare/resource.ts'

/** The columns of the parts that are stored in a column of their row. All other parts have a table. */
const COLUMNS: Readonly<Partial<Record<ItemFeed['stores'], string>>> = {
  body: 'text',
  setting: 'execution_setting',
}

/** @throws TypeError when the part has a table */
export function partColumnOf({ stores }: Pick<ItemFeed, 'stores'>): string {
  const column = COLUMNS[stores]
  if (column === undefined) throw new TypeError(`${stores} is not stored in a column`)
  return column
}

/** The table name of a part's suspicions in `sync_suspicions`. Their key is the key of the row that has the part. */
export function tableOfPart({ table, stores }: Pick<ItemFeed, 'table' | 'stores'>): string {
  const column = COLUMNS[stores]
  return column === undefined ? table : `${table}.${column}`
}
