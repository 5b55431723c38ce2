import type Database from 'better-sqlite3'

export type Sqlite = Database.Database
export type Statement = Database.Statement<unknown[]>

/** Prepares each SQL text once and caches the statement. SQL texts come from declarations, so the cache is bounded. */
export type Prepare = (sql: string) => Statement
