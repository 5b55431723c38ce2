import type { ItemFeed } from '../../declare/resource.ts'

export const SETTING_COLUMN = 'execution_setting'

/** The columns of the parts that are stored in a column of their row. All other parts have a table. */
const COLUMNS: Readonly<Partial<Record<ItemFeed['stores'], string>>> = {
  body: 'text',
  setting: SETTING_COLUMN,
}

/** The table name of a part's suspicions in `sync_suspicions`. Their key is the key of the row that has the part. */
export function tableOfPart({ table, stores }: Pick<ItemFeed, 'table' | 'stores'>): string {
  const column = COLUMNS[stores]
  return column === undefined ? table : `${table}.${column}`
}
