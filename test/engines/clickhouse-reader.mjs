import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Session } from 'chdb'

/**
 * ClickHouse, which loads a library of half a gigabyte. Answers the questions that `engine-process.ts` describes: each is
 * a statement.
 */
const folder = mkdtempSync(join(tmpdir(), 'parley-clickhouse-'))
const session = new Session(folder)
// Otherwise whole numbers beyond a double lose digits, and instants depend on the zone of the machine.
session.query(
  "SET output_format_json_quote_64bit_integers = 1, date_time_output_format = 'unix_timestamp', allow_database_iceberg = 1",
)

function answer(sql) {
  const lines = session.query(sql, 'JSONCompactEachRowWithNamesAndTypes').split('\n')
  const [columns = [], types = [], ...rows] = lines.filter(line => line !== '').map(line => JSON.parse(line))
  const isInstant = types.map(type => type.includes('DateTime64'))
  const cell = (value, place) => (isInstant[place] && value !== null ? microseconds(value) : value)
  return { columns, rows: rows.map(row => row.map(cell)) }
}

/** @param seconds with six places after the point */
const microseconds = seconds => String(BigInt(seconds.replace('.', '')))

for await (const line of createInterface({ input: process.stdin })) {
  let answered
  try {
    answered = answer(JSON.parse(line))
  } catch (error) {
    answered = { error: String(error) }
  }
  process.stdout.write(`${JSON.stringify(answered)}\n`)
}
session.close()
rmSync(folder, { recursive: true, force: true })
