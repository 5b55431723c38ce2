import { type ApiAccess, NOT_THIS_API } from '../api/access-errors.ts'
import type { ApiReader, ReaderReply } from '../api/reader.ts'
import { EXIT_STATUS, StopError } from '../base/errors.ts'
import { isLoopbackUrl, isReadableOnTheWay } from '../base/loopback.ts'
import { type ProxyRules, proxyFor, shownProxy } from '../base/proxies.ts'
import { wholeSecondsText } from '../terminal/wording.ts'
import { checkAccessLog } from './access-log-end.ts'
import { checkEndpoints, type EndpointAnswer } from './endpoints.ts'
import { type Finding, findingsOf } from './finding.ts'

/**
 * What the checks of the API need. They test connection, key, workspace, clock difference, every endpoint, and the
 * access log.
 */
export interface ApiContext {
  api: ApiReader
  access: ApiAccess
  accessLogEndParameter: string
  now(): number
}

export async function* checkApi(context: ApiContext): AsyncGenerator<Finding> {
  yield encryptionFinding(context.access.baseUrl)
  const asked: EndpointAnswer[] = []
  const replies: ReaderReply<unknown>[] = []
  try {
    for await (const one of checkEndpoints(context.api)) {
      asked.push(one)
      if (one.reply) replies.push(one.reply)
      if (isOtherSite(replies)) {
        yield otherSiteFinding(context.access, one.finding)
        return
      }
    }
  } catch (error) {
    if (!isExpectedStop(error)) throw error
    // Where the key is refused, that is not said of each endpoint too.
    yield* asked.filter(({ reply }) => !isUnauthorized(reply)).map(({ finding }) => finding)
    yield stopFinding(error)
    return
  }
  const findings = asked.map(({ finding }) => finding)
  yield answerFinding(replies, context.access)
  yield keyFinding(replies, context.access)
  yield workspaceFinding(replies, context.access)
  // When the API refuses the whole workspace, each endpoint's finding would only repeat that.
  if (isAccessGone(replies)) return
  const clocks = clockDifference(replies)
  yield clocks.finding
  yield* findings
  const serverNow = context.now() + clocks.aheadMs
  try {
    yield await checkAccessLog(context.api, context.accessLogEndParameter, serverNow)
  } catch (error) {
    if (!isExpectedStop(error)) throw error
    yield stopFinding(error)
  }
}

function encryptionFinding(baseUrl: string): Finding {
  const line = findingsOf('connection')
  if (isReadableOnTheWay(baseUrl))
    return line.warning('plain http: the API key is sent unencrypted', 'Set api.base_url to an https URL.')
  return line.ok(isLoopbackUrl(baseUrl) ? 'loopback' : 'encrypted (https)')
}

/** How requests reach the API: through which proxy, and whether its certificate is checked as usual. */
export function routeFindings(
  proxies: ProxyRules,
  env: Readonly<Record<string, string | undefined>>,
  baseUrl: string,
): Finding[] {
  const line = findingsOf('proxy')
  const proxy = proxyFor(proxies, baseUrl)
  const isConfigured = proxies.http !== undefined || proxies.https !== undefined
  return [
    ...(proxy ? [line.ok(`requests to the API go through ${shownProxy(proxy)} (${proxy.source})`)] : []),
    ...(isConfigured && !proxy ? [line.note(`not used for ${baseUrl}`)] : []),
    ...(env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0'
      ? [
          findingsOf('certificates').warning(
            'NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored: parley checks every certificate',
            'Remove the variable. For a certificate of your company, name its file by NODE_EXTRA_CA_CERTS.',
          ),
        ]
      : []),
  ]
}

const DAY_USED_UP = 'day-used-up'

/** The codes of errors that end the API checks, each with the check that it belongs to. */
const CHECK_BY_STOP_CODE: Readonly<Record<string, string>> = {
  unauthorized: 'key',
  'api-silent': 'API',
  [DAY_USED_UP]: 'requests',
}

const isUnauthorized = (reply: ReaderReply<unknown> | undefined): boolean =>
  reply?.kind === 'refused' && reply.status === 401

function isExpectedStop(error: unknown): error is StopError {
  return error instanceof StopError && error.code in CHECK_BY_STOP_CODE
}

function stopFinding({ code, message, hint, exitStatus }: StopError): Finding {
  const line = findingsOf(CHECK_BY_STOP_CODE[code] ?? 'API')
  return code === DAY_USED_UP
    ? line.warning(`${message}: the remaining endpoints were not checked`, hint)
    : line.wrong(message, exitStatus, hint ?? 'Run parley doctor again later.')
}

const NOT_ANSWERED = 'not checked: every request failed'

/** Whether every request failed, as when a server in front of the API answers 503 to everything. */
function isAllFailed(replies: readonly ReaderReply<unknown>[]): boolean {
  return replies.every(({ kind }) => kind === 'failed')
}

function answerFinding(replies: readonly ReaderReply<unknown>[], { baseUrl }: ApiAccess): Finding {
  const line = findingsOf('API')
  if (!isAllFailed(replies)) return line.ok(`${baseUrl} answers`)
  return line.wrong(
    `all ${replies.length} requests to ${baseUrl} failed`,
    EXIT_STATUS.apiUnavailable,
    'Run parley doctor again later. If the requests still fail, check api.base_url.',
  )
}

function keyFinding(replies: readonly ReaderReply<unknown>[], { keySource }: ApiAccess): Finding {
  const line = findingsOf('key')
  return isAllFailed(replies) ? line.note(NOT_ANSWERED) : line.ok(`accepted; from ${keySource.text}`)
}

function isAccessGone(replies: readonly ReaderReply<unknown>[]): boolean {
  return replies.every(reply => reply.kind === 'refused' && [403, 404].includes(reply.status))
}

/** When this many responses lack the API's format, and none has it, `api.base_url` leads to another site. */
const MIN_FOREIGN_ANSWERS = 3

function isOtherSite(replies: readonly ReaderReply<unknown>[]): boolean {
  return (
    replies.length >= MIN_FOREIGN_ANSWERS && replies.every(reply => 'isForeign' in reply && reply.isForeign)
  )
}

function otherSiteFinding({ baseUrl }: ApiAccess, { found }: Finding): Finding {
  return findingsOf('API').wrong(
    `${baseUrl} does not answer like the API: ${found}`,
    EXIT_STATUS.apiUnavailable,
    NOT_THIS_API,
  )
}

function workspaceFinding(
  replies: readonly ReaderReply<unknown>[],
  { baseUrl, workspaceId }: ApiAccess,
): Finding {
  const line = findingsOf('workspace')
  if (isAllFailed(replies)) return line.note(NOT_ANSWERED)
  if (!isAccessGone(replies)) return line.ok(`${workspaceId} is readable`)
  const statuses = new Set(replies.flatMap(reply => (reply.kind === 'refused' ? [reply.status] : [])))
  return line.wrong(
    `the API at ${baseUrl} answers ${[...statuses].join(' or ')} to all ${replies.length} requests for workspace ${workspaceId}`,
    EXIT_STATUS.refused,
    'Check api.workspace_id and the rights of the API key.',
  )
}

const TOLERATED_MS = 30_000

/** How far the API's clock is ahead. The `Date` header is cut to the second, so half a second is added. */
function clockDifference(replies: readonly ReaderReply<unknown>[]) {
  const line = findingsOf('clock')
  const [ahead] = replies.flatMap(reply =>
    reply.kind === 'answer' && reply.serverTime !== undefined
      ? [reply.serverTime + 500 - reply.localTime]
      : [],
  )
  if (ahead === undefined) {
    return {
      aheadMs: 0,
      finding: line.note('no successful response had a Date header, so the clock could not be compared'),
    }
  }
  const apart = wholeSecondsText(Math.abs(ahead))
  const aheadMs = Math.round(ahead)
  if (Math.abs(ahead) <= TOLERATED_MS)
    return { aheadMs, finding: line.ok(`differs from the API's clock by ${apart}`) }
  const found = `${apart} ${ahead > 0 ? 'behind' : 'ahead of'} the API's clock`
  return {
    aheadMs,
    finding: line.warning(
      found,
      "Correct this machine's clock (NTP): parley computes ages and waits from it.",
    ),
  }
}
