import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { startMeasured, type Usage } from './measured-process.ts'
import type { Figure } from './report.ts'

/** Measures whether a list with thousands of scopes costs more for each of them. */

export interface ScopesMeasured {
  /** By the number of collections. */
  usages: ReadonlyMap<number, Usage>
}

const FEW = 500
const MANY = 5000
const PAGE = 100
const MOST_RATIO = 1.2

export async function runScopes(options: { folder: string; program: string }): Promise<ScopesMeasured> {
  const usages = new Map<number, Usage>()
  for (const collections of [FEW, MANY]) {
    process.stderr.write(`${collections} collections\n`)
    usages.set(collections, await backfillOf(collections, options))
  }
  return { usages }
}

/** Reads that many collections, each without a meeting, from an API that answers at once. */
async function backfillOf(
  count: number,
  { folder, program }: { folder: string; program: string },
): Promise<Usage> {
  const ids = Array.from({ length: count }, (_, number) => number.toString(16).padStart(24, '0'))
  const server = createServer(({ url = '' }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://api')
    const from = Number(searchParams.get('cursor') ?? 0)
    const next = from + PAGE
    const isList = pathname === '/v1/collections'
    const data = isList ? ids.slice(from, next).map(id => ({ id, name: id })) : []
    const next_cursor = isList && next < count ? String(next) : null
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ data, pagination: { next_cursor } }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const database = join(folder, `scopes-${count}.db`)
  const args = ['backfill', '--only', 'collection_meetings', '--database', database, '--log-level', 'silent']
  const { ended } = startMeasured([program, ...args], {
    PATH: process.env['PATH'],
    PARLEY_BASE_URL: `http://127.0.0.1:${port}`,
    PARLEY_API_KEY: 'key',
    PARLEY_WORKSPACE_ID: 'acme',
  })
  try {
    return await ended
  } finally {
    server.close()
  }
}

export function scopesFigures({ usages }: ScopesMeasured): Figure[] {
  const each = (count: number) => (usages.get(count)?.userMs ?? 0) / count
  const ratio = each(MANY) / each(FEW)
  const cost = (count: number): Figure => ({
    measure: `processor time for each of ${count.toLocaleString('en')} empty collections`,
    value: `${each(count).toFixed(2)} ms`,
    wanted: '',
    reached: undefined,
  })
  const compared = {
    measure: `one of ${MANY.toLocaleString('en')} over one of ${FEW}`,
    value: ratio.toFixed(2),
    wanted: `≤ ${MOST_RATIO}`,
    reached: ratio <= MOST_RATIO,
  }
  return [cost(FEW), cost(MANY), compared]
}
