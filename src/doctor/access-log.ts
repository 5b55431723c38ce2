import { readPage } from '../api/paging.ts'
import type { ApiReader } from '../api/reader.ts'
import type { Query } from '../api/request.ts'
import { isoInstant } from '../clock.ts'
import { EXIT_STATUS } from '../errors.ts'
import { canonicalInstant } from '../instant.ts'
import { createFinder, type Finding } from './check.ts'

const ROUTE = '/v1/public-api-access-logs'
const PERIOD_MS = 24 * 3_600_000

/**
 * Checks that the workspace offers the access log and that the API understands `access_log.end_parameter`. The end of a
 * period is exclusive, so a period that ends at the newest entry must not contain that entry.
 * @param now the server's clock, in ms since the epoch
 */
export async function checkAccessLog(api: ApiReader, endParameter: string, now: number): Promise<Finding> {
  const line = createFinder(`GET ${ROUTE}`)
  const ask = (query: Query) =>
    api.read({ resource: 'access_logs', route: ROUTE, path: ROUTE, query }, value =>
      timesOf(readPage('v1-cursor', value, query).items),
    )
  const bare = await ask({ limit: '1' })
  // The API's description does not say whether a period is required.
  const needsPeriod = bare.kind === 'refused' && bare.status === 400
  const newest = needsPeriod ? await ask({ limit: '1', from: isoInstant(now - PERIOD_MS) }) : bare
  if (newest.kind === 'failed') {
    return line.wrong(
      newest.message,
      EXIT_STATUS.apiUnavailable,
      newest.hint ?? 'Run parley doctor again later.',
    )
  }
  if (newest.kind === 'refused' && newest.status !== 400) {
    if ([403, 404].includes(newest.status)) {
      return line.note(`${newest.status}: not offered to this workspace (allowed)`)
    }
    return line.wrong(`${newest.status}: ${newest.message}`, EXIT_STATUS.apiUnavailable, NEWER_VERSION_HINT)
  }
  const end = newest.kind === 'answer' ? newest.value[0] : isoInstant(now)
  if (end === undefined) return line.note(`200, but there is no entry to test ?${endParameter}= with`)
  const from = isoInstant(Date.parse(end) - PERIOD_MS)
  const before = await ask({ limit: '50', from, [endParameter]: end })
  if (before.kind !== 'answer' || before.value.some(time => time >= end)) {
    return endParameterRefused(line, endParameter)
  }
  return line.ok(`200, and ?${endParameter}= ends a period`)
}

const NEWER_VERSION_HINT = 'The API may have changed: install the newest version of parley.'

function endParameterRefused(line: ReturnType<typeof createFinder>, endParameter: string): Finding {
  return line.wrong(
    `the API does not accept ?${endParameter}= as the end of a period`,
    EXIT_STATUS.apiUnavailable,
    'Set access_log.end_parameter to the name that the API uses, such as "to", "until" or "end".',
  )
}

function timesOf(items: readonly unknown[]): string[] {
  return items.flatMap(item => {
    if (typeof item !== 'object' || item === null || !('occurred_at' in item)) return []
    return typeof item.occurred_at === 'string' ? (canonicalInstant(item.occurred_at) ?? []) : []
  })
}
