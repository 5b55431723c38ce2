import type { ItemFeed } from '../../catalog/resource.ts'

/** Parts that are a column of their row. The others have a separate table. */
const COLUMNS: Readonly<Partial<Record<ItemFeed['stores'], string>>> = {
  body: 'text',
  setting: 'execution_setting',
}

/** The table that suspicions of a part are noted under, with the key of the row that it is a part of. */
export function tableOfPart({ table, stores }: Pick<ItemFeed, 'table' | 'stores'>): string {
  const column = COLUMNS[stores]
  return column === undefined ? table : `${table}.${column}`
}
