import { readPage } from '../api/paging.ts'
import type { ApiReader, ReaderReply } from '../api/reader.ts'
import type { Query } from '../api/request.ts'
import { DAY_MS, isoInstant } from '../base/clock.ts'
import { EXIT_STATUS } from '../base/errors.ts'
import { canonicalInstant } from '../base/instant.ts'
import { resourceNamed } from '../catalog/catalog.ts'
import type { PeriodicFeed } from '../declare/resource.ts'
import { type CheckFindings, type Finding, findingsOf, MEANINGS, refusedHint } from './finding.ts'

const FEED = declaredFeed()
const { path: ROUTE, paging: PAGING } = FEED.list

/**
 * Checks that the workspace offers the access log and that the API understands `access_log.end_parameter`. The end of a
 * period is exclusive, so a period that ends at the newest entry must not contain that entry.
 * @param now the server's clock, in ms since the epoch
 */
export async function checkAccessLog(api: ApiReader, endParameter: string, now: number): Promise<Finding> {
  const line = findingsOf(`GET ${ROUTE}`)
  const ask = (query: Query) =>
    api.read({ route: ROUTE, path: ROUTE, query }, value => timesOf(readPage(PAGING, value, query).items))
  const bare = await ask({ limit: '1' })
  // The API's description does not say whether a period is required.
  const needsPeriod = bare.kind === 'refused' && bare.status === 400
  const newest = needsPeriod ? await ask({ limit: '1', [FEED.from]: isoInstant(now - DAY_MS) }) : bare
  if (newest.kind === 'failed') return notAnswered(line, newest)
  if (newest.kind === 'refused' && newest.status !== 400) {
    const meaning = FEED.expected?.[newest.status]
    if (meaning) return line.note(`${newest.status}: ${MEANINGS[meaning]}`)
    return line.wrong(
      `${newest.status}: ${newest.message}`,
      EXIT_STATUS.apiUnavailable,
      refusedHint(newest.status),
    )
  }
  const end = newest.kind === 'answer' ? newest.value[0] : isoInstant(now)
  if (end === undefined)
    return line.note(`200, but no entry, so access_log.end_parameter (${endParameter}) could not be tested`)
  const from = isoInstant(Date.parse(end) - DAY_MS)
  const before = await ask({ limit: '50', [FEED.from]: from, [endParameter]: end })
  if (before.kind === 'failed') return notAnswered(line, before)
  if (before.kind !== 'answer' || before.value.some(time => time >= end)) {
    return endParameterRefused(line, endParameter)
  }
  return line.ok(`200, and ?${endParameter}= ends a period`)
}

function notAnswered(
  line: CheckFindings,
  { message, hint }: Extract<ReaderReply<unknown>, { kind: 'failed' }>,
): Finding {
  return line.wrong(
    message,
    EXIT_STATUS.apiUnavailable,
    hint ?? 'Correct the setting that the message names. If it names none, run parley doctor again later.',
  )
}

function endParameterRefused(line: CheckFindings, endParameter: string): Finding {
  return line.wrong(
    `the API does not accept ?${endParameter}= as the end of a period`,
    EXIT_STATUS.apiUnavailable,
    'Set access_log.end_parameter to the name that the API uses, such as "to", "until" or "end".',
  )
}

function timesOf(items: readonly unknown[]): string[] {
  return items.flatMap(item => {
    const time = Object.entries(item ?? {}).find(([field]) => field === FEED.time)?.[1]
    return typeof time === 'string' ? (canonicalInstant(time) ?? []) : []
  })
}

function declaredFeed(): PeriodicFeed {
  const { log } = resourceNamed('access_logs').feeds
  if (log?.mode !== 'periodic') throw new TypeError('The access log is not declared as a periodic list')
  return log
}
