import type { ItemFeed } from '../../resource.ts'

/** A part that is a column of its row; any other has a table of its own. */
const COLUMNS: Readonly<Partial<Record<ItemFeed['stores'], string>>> = {
  body: 'text',
  setting: 'execution_setting',
}

/** The table that suspicions of a part are noted under, with the key of the row that it is a part of. */
export function tableOfPart({ table, stores }: Pick<ItemFeed, 'table' | 'stores'>): string {
  const column = COLUMNS[stores]
  return column === undefined ? table : `${table}.${column}`
}
