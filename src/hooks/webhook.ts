import { type Clock, SECOND_MS } from '../clock.ts'
import { errorCode } from '../error-code.ts'
import type { HookPayload } from './call.ts'

const LIMIT_MS = 10 * SECOND_MS

/**
 * Posts the payload and follows no redirect, since another address may belong to someone else. Never rejects.
 * @returns why the call failed, without any text of the server; undefined after a 2xx
 */
export async function postWebhook(
  url: string,
  payload: HookPayload,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<string | undefined> {
  const over = new AbortController()
  const limit = new AbortController()
  void clock.sleep(LIMIT_MS, over.signal).then(() => limit.abort())
  try {
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': 'application/json', 'user-agent': 'parley' },
      body: JSON.stringify(payload),
      signal: AbortSignal.any([signal, limit.signal]),
    })
    // The body is not read. Its end or failure changes nothing.
    response.body?.cancel().catch(() => undefined)
    return response.ok ? undefined : `HTTP status ${response.status}`
  } catch (error) {
    if (limit.signal.aborted) return `no answer within ${LIMIT_MS / SECOND_MS} s`
    if (signal.aborted) return 'parley ends'
    return errorCode(error instanceof Error ? error.cause : undefined) ?? 'the request failed'
  } finally {
    over.abort()
  }
}
