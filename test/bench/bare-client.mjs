/**
 * A client that only sends requests, keeps a fixed number in flight and ignores the answers: the maximum that a
 * program can reach. Arguments: address, key, workspace, requests in flight. It ends when the server stops answering.
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
