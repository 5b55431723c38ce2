import { type ApiAccess, NOT_THIS_API } from '../../api/access.ts'
import type { Asker, Reply } from '../../api/ask.ts'
import { EXIT_STATUS, type ExitStatus, StopError } from '../../errors.ts'
import { checkAccessLog } from './access-log.ts'
import { type Finding, finder } from './check.ts'
import { checkEndpoints } from './endpoints.ts'

/** Checks of the API: connection, key, workspace, every endpoint, and the difference of the clocks. */
export interface ApiContext {
  asker: Asker
  access: ApiAccess
  accessLogEndParameter: string
  now(): number
}

export async function* checkApi(context: ApiContext): AsyncGenerator<Finding> {
  yield encryption(context.access.baseUrl)
  const replies: Reply<unknown>[] = []
  const findings: Finding[] = []
  try {
    for await (const { finding, reply } of checkEndpoints(context.asker)) {
      if (reply) replies.push(reply)
      findings.push(finding)
      if (isAnotherSite(replies)) {
        yield anotherSite(context.access, finding)
        return
      }
    }
  } catch (error) {
    if (!(error instanceof StopError) || !(error.code in STOPS)) throw error
    yield* findings
    yield stopped(error)
    return
  }
  yield finder('API').ok(`${context.access.baseUrl} answers`)
  yield finder('key').ok(`accepted; from ${context.access.keySource}`)
  yield workspace(replies, context.access)
  // What the workspace refuses as a whole need not be told of each endpoint.
  if (isAccessGone(replies)) return
  const clocks = clockDifference(replies)
  if (clocks) yield clocks.finding
  yield* findings
  const serverNow = context.now() + (clocks?.aheadMs ?? 0)
  try {
    yield await checkAccessLog(context.asker, context.accessLogEndParameter, serverNow)
  } catch (error) {
    if (!(error instanceof StopError) || error.code !== DAY_USED_UP) throw error
    yield stopped(error)
  }
}

function encryption(baseUrl: string): Finding {
  const line = finder('connection')
  const { protocol, hostname } = new URL(baseUrl)
  if (protocol === 'https:') return line.ok('encrypted (https)')
  const isLoopback = hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
  if (isLoopback) return line.ok('within this machine (http)')
  return line.warning('plain http: the key goes over the network unencrypted', 'Set api.base_url to https.')
}

/** Variables by which other programs are told of a proxy. Their values may hold a password. */
export function ignoredProxy(env: Readonly<Record<string, string | undefined>>, baseUrl: string): Finding[] {
  const { protocol, host } = new URL(baseUrl)
  const names = [protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY', 'ALL_PROXY']
  const set = names.flatMap(name => [name, name.toLowerCase()]).filter(name => env[name])
  if (set.length === 0) return []
  const found = `${set.join(' and ')} ${set.length === 1 ? 'is' : 'are'} ignored: parley connects to the API directly`
  return [finder('proxy').note(found, `Let this machine connect to ${host} without a proxy.`)]
}

/** What ends the questions, by the error's code: the check that it is the answer to. */
const DAY_USED_UP = 'day-used-up'

const STOPS: Readonly<Record<string, string>> = {
  unauthorized: 'key',
  'api-silent': 'API',
  [DAY_USED_UP]: 'requests',
}

function stopped(error: StopError): Finding {
  const status: ExitStatus = error.exitStatus
  const { message, hint } = error
  if (error.code === DAY_USED_UP) {
    return finder(STOPS[DAY_USED_UP] ?? '').warning(
      `${message}: the rest of the API was not asked`,
      hint ?? '',
    )
  }
  return finder(STOPS[error.code] ?? 'API').wrong(error.message, status, error.hint ?? 'Run it again later.')
}

function isAccessGone(replies: readonly Reply<unknown>[]): boolean {
  return replies.every(reply => reply.kind === 'refused' && [403, 404].includes(reply.status))
}

/** So many answers in a form that is not the API's, and none in its own. */
const FOREIGN_ANSWERS = 3

function isAnotherSite(replies: readonly Reply<unknown>[]): boolean {
  return replies.length >= FOREIGN_ANSWERS && replies.every(reply => 'isForeign' in reply && reply.isForeign)
}

function anotherSite({ baseUrl }: ApiAccess, { found }: Finding): Finding {
  return finder('API').wrong(`${baseUrl} is not this API: ${found}`, EXIT_STATUS.apiUnavailable, NOT_THIS_API)
}

function workspace(replies: readonly Reply<unknown>[], { baseUrl, workspaceId }: ApiAccess): Finding {
  const line = finder('workspace')
  if (!isAccessGone(replies)) return line.ok(`${workspaceId}, readable`)
  const statuses = new Set(replies.flatMap(reply => (reply.kind === 'refused' ? [reply.status] : [])))
  return line.wrong(
    `the API at ${baseUrl} answers ${[...statuses].join(' or ')} to all ${replies.length} requests for workspace ${workspaceId}`,
    EXIT_STATUS.refused,
    'Check api.workspace_id, and what the key may read.',
  )
}

const NOTICED_MS = 30_000

/** A `Date` is cut to the second, so half of one is added. */
function clockDifference(replies: readonly Reply<unknown>[]) {
  const line = finder('clock')
  const [ahead] = replies.flatMap(reply =>
    reply.kind === 'answer' && reply.serverTime !== undefined
      ? [reply.serverTime + 500 - reply.localTime]
      : [],
  )
  if (ahead === undefined) {
    return { aheadMs: 0, finding: line.note('the API sends no Date to compare the clocks by') }
  }
  const apart = spanText(Math.abs(ahead) / 1000)
  const aheadMs = Math.round(ahead)
  if (Math.abs(ahead) <= NOTICED_MS) return { aheadMs, finding: line.ok(`${apart} from the API's`) }
  const found = `${apart} ${ahead > 0 ? 'behind' : 'ahead of'} the API's clock`
  return { aheadMs, finding: line.warning(found, "Set this machine's clock (NTP): ages and waits go by it.") }
}

function spanText(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`
}
