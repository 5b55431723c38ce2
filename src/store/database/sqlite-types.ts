import type Database from 'better-sqlite3'

export type Sqlite = Database.Database
export type Statement<Row = unknown> = Database.Statement<unknown[], Row>

/**
 * A cell as SQLite returns it. A statement with `safeIntegers()` returns integers as bigint, so that no digit is lost.
 */
export type StoredCell = string | number | bigint | null

/**
 * Prepares each SQL text once and caches the statement. SQL texts come from declarations, so the cache is bounded.
 * `Row` is the type of what `get` and `all` return: an object, a list of cells after `raw`, or a value after `pluck`.
 */
export type Prepare = <Row = unknown>(sql: string) => Statement<Row>
