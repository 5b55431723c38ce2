import { type Clock, inTime, SECOND_MS } from '../base/clock.ts'
import { errorCode } from '../base/errors.ts'
import { createHttpPool } from '../base/http-pool.ts'
import { ProxyError, type ProxyRules } from '../base/proxies.ts'
import type { HookPayload } from './call.ts'

const LIMIT = { ms: 10 * SECOND_MS, error: new Error('no answer within 10 s') }

/**
 * Posts the payload and follows no redirect, since another address may belong to someone else. Never rejects.
 * @returns why the call failed, without any text of the server; undefined after a 2xx
 */
export async function postWebhook(
  url: string,
  payload: HookPayload,
  { clock, proxies, signal }: { clock: Clock; proxies: ProxyRules; signal: AbortSignal },
): Promise<string | undefined> {
  const { origin, pathname, search } = new URL(url)
  const pool = createHttpPool(origin, { proxies, connectMs: LIMIT.ms, connections: 1 })
  const post = (limit: AbortSignal) =>
    pool.request({
      method: 'POST',
      path: pathname + search,
      headers: { 'content-type': 'application/json', 'user-agent': 'parley' },
      body: JSON.stringify(payload),
      signal: AbortSignal.any([signal, limit]),
    })
  try {
    const { statusCode, body } = await inTime(clock, LIMIT, post)
    // The body is not read. Its end or failure changes nothing.
    body.on('error', () => undefined).destroy()
    return statusCode >= 200 && statusCode < 300 ? undefined : `HTTP status ${statusCode}`
  } catch (error) {
    if (error === LIMIT.error) return LIMIT.error.message
    if (signal.aborted) return 'parley ends'
    if (error instanceof ProxyError) return error.message
    return errorCode(error) ?? 'the request failed'
  } finally {
    void pool.destroy()
  }
}
