import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Session } from 'chdb'

/**
 * ClickHouse in a process, behind as much of its HTTP interface as parley uses: one statement in the body, also with
 * binary rows as its answer, or an INSERT in the parameter `query` and its data in the body. The arguments are the folder
 * of its data and the port.
 */
const session = new Session(process.argv[2])
session.query('SET output_format_json_quote_64bit_integers = 1')
const temporary = mkdtempSync(join(tmpdir(), 'parley-inserts-'))
let inserts = 0

function answer(insert, body) {
  if (insert === null) return select(String(body))
  const [, table, format] = /^INSERT INTO (\S+) FORMAT (\w+)$/.exec(insert)
  inserts += 1
  const file = join(temporary, `${inserts}`)
  writeFileSync(file, body)
  const columns = session.query(`DESCRIBE TABLE ${table}`, 'JSONCompactEachRow')
  const structure = columns
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line))
    .map(([name, type]) => `\`${name.replaceAll(/[\\`]/g, '\\$&')}\` ${type}`)
    .join(', ')
  const arguments_ = [file, format, structure].map(text => `'${text.replaceAll(/[\\']/g, '\\$&')}'`)
  const text = session.query(`INSERT INTO ${table} SELECT * FROM file(${arguments_.join(', ')})`)
  rmSync(file)
  return text
}

/** The binding returns text, which would damage binary rows, so they go through a file. */
function select(statement) {
  const [, rows] = /^(SELECT .*) FORMAT RowBinary$/s.exec(statement) ?? []
  if (rows === undefined) return session.query(statement, 'TabSeparated')
  const file = join(temporary, 'answer')
  session.query(`INSERT INTO FUNCTION file('${file}', 'RowBinary') ${rows}`)
  if (!existsSync(file)) return Buffer.alloc(0)
  const answer = readFileSync(file)
  rmSync(file)
  return answer
}

const server = createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const { searchParams } = new URL(request.url, 'http://localhost')
  try {
    response.end(answer(searchParams.get('query'), Buffer.concat(chunks)))
  } catch (error) {
    const text = String(error)
    const message = text.slice(Math.max(0, text.indexOf('Code: ')))
    response.writeHead(500).end(message)
  }
})
server.listen(Number(process.argv[3]), '127.0.0.1')
