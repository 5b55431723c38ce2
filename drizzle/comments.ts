import { fullMeaning, sqlComment } from '../src/dictionary/described-table.ts'
import { describedTable } from '../src/dictionary/dictionary.ts'
import { INTERNAL_TABLES } from '../src/dictionary/sync-tables.ts'

/**
 * Replaces the comments of a migration with the meaning of each table and column. Nothing else changes. SQLite keeps
 * the comments with the schema. The comment of a column is before the comma that ends the column: there, SQLite leaves
 * it with its column when other columns are added or dropped later.
 */
export function commented(migration: string): string {
  const bare = migration.replace(/ \/\*.*?\*\//g, '')
  return bare.replace(CREATE, createWith).replace(ADD, addWith)
}

/** `CREATE TABLE` with each column on a separate line. */
const CREATE = /^CREATE TABLE `(?:__new_)?(\w+)` \(\n(?:\t.*\n)+/gm
const ADD = /^ALTER TABLE `(\w+)` ADD `(\w+)` [^;]*/gm
const COLUMN = /^(\t`(\w+)` .*?)(,?)$/gm

function createWith(statement: string, table: string): string {
  const about = describedTable(table)?.about ?? INTERNAL_TABLES[table]
  return statement
    .replace(
      COLUMN,
      (_, line: string, column: string, comma: string) => `${line}${of(table, column)}${comma}`,
    )
    .replace('(\n', start => (about === undefined ? start : `( ${sqlComment(about)}\n`))
}

function addWith(statement: string, table: string, column: string): string {
  return `${statement}${of(table, column)}`
}

/** Empty for a column without a description: one of an internal table, or one that a later migration dropped. */
function of(table: string, column: string): string {
  const known = describedTable(table)?.columns.find(({ name }) => name === column)
  return known ? ` ${sqlComment(fullMeaning(known))}` : ''
}
