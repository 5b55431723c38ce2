import type { Sqlite } from '../../src/store/database/sqlite-types.ts'

export interface Scan {
  /** The table or index that is scanned in full. */
  name: string
  rows: number
}

interface Instruction {
  opcode: string
  p1: number
  p2: number
}

const FROM_THE_START = ['Rewind', 'Last']
const ONWARDS = ['Next', 'Prev']

/**
 * The tables and indices that a statement scans in full, the largest first. Taken from its bytecode, because the query
 * plan names only aliases. Temporary tables are left out.
 */
export function scansOf(db: Sqlite, sql: string): Scan[] {
  const program = db.prepare(`EXPLAIN ${sql}`).all() as Instruction[]
  const opened = new Map(program.filter(({ opcode }) => opcode === 'OpenRead').map(({ p1, p2 }) => [p1, p2]))
  const cursors = (opcodes: readonly string[]) =>
    program.filter(({ opcode }) => opcodes.includes(opcode)).map(({ p1 }) => p1)
  const goOn = new Set(cursors(ONWARDS))
  const roots = cursors(FROM_THE_START).flatMap(cursor =>
    goOn.has(cursor) ? (opened.get(cursor) ?? []) : [],
  )
  return [...new Set(roots)].flatMap(root => scanOf(db, root)).sort((a, b) => b.rows - a.rows)
}

function scanOf(db: Sqlite, root: number): Scan[] {
  const found = db.prepare('SELECT name, tbl_name AS "table" FROM sqlite_master WHERE rootpage = ?').get(root)
  if (found === undefined) return []
  const { name, table } = found as { name: string; table: string }
  const rows = db.prepare(`SELECT count(*) FROM "${table}"`).pluck().get() as number
  return [{ name, rows }]
}
