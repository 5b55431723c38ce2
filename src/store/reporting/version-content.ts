import { columnNames } from '../database/existing-tables.ts'
import { quote } from '../database/sql.ts'
import type { Sqlite } from '../database/sqlite-types.ts'

/** The content of a table of versions that belongs to a row of another table, and is purged with that row. */
export interface VersionContent {
  table: string
  /** The table of the row. */
  owner: string
  /** The column with the id of the row. */
  key: string
  /** SQL for the only scope of the row, in a table whose key has one. */
  scope?: string
  content: readonly string[]
}

/** The purged columns. The key of a version, its times and its outcome stay. */
const DEAL_CONTENT = [
  ...['pipeline_id', 'stage_id', 'stage', 'amount', 'currency', 'close_date', 'owner_id'],
  'forecast_category',
]

const VERSION_CONTENT: readonly VersionContent[] = [
  { table: 'member_versions', owner: 'members', key: 'member_id', content: ['name', 'email'] },
  { table: 'team_versions', owner: 'teams', key: 'team_id', content: ['team'] },
  {
    table: 'deal_versions',
    owner: 'crm_records',
    key: 'deal_id',
    scope: "(SELECT value FROM report_settings WHERE name = 'crm.deal.object')",
    content: DEAL_CONTENT,
  },
]

/** The tables of versions that the file has with these columns: a foreign table may have the same name. */
export const versionContents = (db: Sqlite): readonly VersionContent[] =>
  VERSION_CONTENT.filter(({ table, content }) => {
    const found = columnNames(db, table)
    return content.every(column => found.has(column))
  })

/** SQL that empties the content of the versions of the row `@scope`, `@key`. */
export const blankVersions = ({ table, key, scope, content }: VersionContent): string =>
  `UPDATE ${quote(table)} SET ${content.map(column => `${quote(column)} = NULL`).join(', ')}
   WHERE ${quote(key)} = @key${scope === undefined ? '' : ` AND @scope = ${scope}`}`
