import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Session } from 'chdb'

/**
 * ClickHouse in a process, behind as much of its HTTP interface as a publication uses: one statement in the body, or an
 * INSERT in the parameter `query` and its data in the body. The arguments are the folder of its data
 * and the port.
 */
const session = new Session(process.argv[2])
session.query('SET output_format_json_quote_64bit_integers = 1')
const temporary = mkdtempSync(join(tmpdir(), 'parley-inserts-'))
let inserts = 0

function answer(insert, body) {
  if (insert === null) return session.query(String(body), 'TabSeparated')
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
