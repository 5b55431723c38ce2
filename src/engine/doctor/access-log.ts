import type { Asker } from '../../api/ask.ts'
import { readPage } from '../../api/paging.ts'
import { isoInstant } from '../../clock.ts'
import { EXIT_STATUS } from '../../errors.ts'
import { canonicalInstant } from '../../instant.ts'
import { type Finding, finder } from './check.ts'

const ROUTE = '/v1/public-api-access-logs'
const PERIOD = 24 * 3_600_000

type Query = Readonly<Record<string, string>>

/**
 * Whether the log is offered, and whether the end of a period is understood under the name that is set: the newest
 * entry's own time as an exclusive end must leave that entry out.
 * @param now the server's clock in ms
 */
export async function checkAccessLog(asker: Asker, endParameter: string, now: number): Promise<Finding> {
  const line = finder(`GET ${ROUTE}`)
  const ask = (query: Query) =>
    asker.ask({ resource: 'access_logs', route: ROUTE, path: ROUTE, query }, value =>
      timesOf(readPage('v1-cursor', value, query).items),
    )
  const bare = await ask({ limit: '1' })
  // The description does not say whether a period must be named.
  const needsPeriod = bare.kind === 'refused' && bare.status === 400
  const newest = needsPeriod ? await ask({ limit: '1', from: isoInstant(now - PERIOD) }) : bare
  if (newest.kind === 'failed') {
    return line.wrong(newest.message, EXIT_STATUS.apiUnavailable, newest.hint ?? 'Run it again later.')
  }
  if (newest.kind === 'refused' && newest.status !== 400) {
    if ([403, 404].includes(newest.status)) {
      return line.note(`${newest.status}: not offered to this workspace (allowed)`)
    }
    return line.wrong(`${newest.status}: ${newest.message}`, EXIT_STATUS.apiUnavailable, CHANGED)
  }
  const end = newest.kind === 'answer' ? newest.value[0] : isoInstant(now)
  if (end === undefined)
    return line.note(`200, but no entry to try the end of a period with (?${endParameter}=)`)
  const from = isoInstant(Date.parse(end) - PERIOD)
  const before = await ask({ limit: '50', from, [endParameter]: end })
  if (before.kind !== 'answer' || before.value.some(time => time >= end)) {
    return notUnderstood(line, endParameter)
  }
  return line.ok(`200, and ?${endParameter}= ends a period`)
}

const CHANGED = 'The API may have changed: look for a newer version of parley.'

function notUnderstood(line: ReturnType<typeof finder>, endParameter: string): Finding {
  return line.wrong(
    `the API does not understand ?${endParameter}= as the end of a period`,
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
