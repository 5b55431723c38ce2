import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Session } from 'chdb'

/**
 * ClickHouse in a process of its own: it loads a library of half a gigabyte. A line of standard input is a query, as a
 * JSON string; the line of standard output that answers it is `{ "rows": [[…]] }` or `{ "error": "…" }`.
 */
const folder = mkdtempSync(join(tmpdir(), 'parley-clickhouse-'))
const session = new Session(folder)
// Otherwise whole numbers beyond a double lose digits.
session.query('SET output_format_json_quote_64bit_integers = 1')

function answer(sql) {
  try {
    const text = session.query(sql, 'JSONCompactEachRow')
    return { rows: text.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line)])) }
  } catch (error) {
    return { error: String(error) }
  }
}

for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(answer(JSON.parse(line)))}\n`)
session.close()
rmSync(folder, { recursive: true, force: true })
