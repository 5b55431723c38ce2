import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Cell } from '../support/published-cells.ts'

export interface ClickHouse {
  /** @throws Error with ClickHouse's message when the query fails */
  query(sql: string): Promise<Cell[][]>
  /** Rows in the form of `expectedTables`. Names that the table does not have are an error. */
  table(path: string, settings?: string): Promise<TableRows>
  /** The same for any table or table function. */
  rows(source: string, settings?: string): Promise<TableRows>
  close(): Promise<void>
}

export interface TableRows {
  columns: string[]
  rows: Cell[][]
}

const READER = new URL('clickhouse-reader.mjs', import.meta.url).pathname

export function startClickHouse(): ClickHouse {
  // It reads only files below its current folder.
  const child = spawn(process.execPath, [READER], { cwd: '/', stdio: ['pipe', 'pipe', 'inherit'] })
  const closed = once(child, 'close')
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  // One query at a time: answers come in the order of the queries.
  let last: Promise<unknown> = Promise.resolve()
  const ask = async (sql: string): Promise<Cell[][]> => {
    child.stdin.write(`${JSON.stringify(sql)}\n`)
    const { value, done } = await answers.next()
    if (done) throw new Error(`ClickHouse ended without an answer to ${sql}`)
    const { rows, error } = JSON.parse(value)
    if (error !== undefined) throw new Error(`${error} (${sql})`)
    return rows
  }
  const query: ClickHouse['query'] = sql => {
    const answer = last.then(() => ask(sql))
    last = answer.catch(() => undefined)
    return answer
  }
  const rows: ClickHouse['rows'] = async (source, settings = '') => {
    const described = await query(`DESCRIBE ${source} ${settings}`)
    const columns = described.map(([name, type]) => ({ name: String(name), type: String(type) }))
    const cells = columns.map(({ name, type }) => readCell(identifier(name), type))
    const found = await query(`SELECT ${cells.join(', ')} FROM ${source} ${settings}`)
    return { columns: columns.map(({ name }) => name), rows: found }
  }
  return {
    query,
    rows,
    table: (path, settings) => rows(`icebergLocal(${literal(path)})`, settings),
    async close() {
      child.stdin.end()
      await closed
    },
  }
}

const readCell = (cell: string, type: string): string =>
  type.includes('DateTime64') ? `toUnixTimestamp64Micro(${cell})` : cell

export const literal = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

export const identifier = (name: string): string =>
  `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``
