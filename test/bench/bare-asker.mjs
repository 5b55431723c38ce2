/**
 * A client that only asks, with so many requests in flight at any time and nothing done with the answers: what any
 * program can reach at most. Arguments: address, key, workspace, requests at once. It ends when nobody answers.
 */
import { Pool } from 'undici'

const [url, apiKey, workspaceId, atOnce] = process.argv.slice(2)
const pool = new Pool(url, { connections: Number(atOnce), pipelining: 1 })
const request = {
  method: 'GET',
  path: '/v2/messages?limit=1',
  headers: { 'x-api-key': apiKey, 'x-workspace-id': workspaceId },
}

async function askOn() {
  for (;;) {
    const { body } = await pool.request(request)
    await body.dump()
  }
}

await Promise.all(Array.from({ length: Number(atOnce) }, askOn)).catch(() => process.exit(0))
