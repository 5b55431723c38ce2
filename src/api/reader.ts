import type { Clock } from '../base/clock.ts'
import { EXIT_STATUS, ParleyError, RetryError, StopError } from '../base/errors.ts'
import { noAnswerError, unauthorized } from './access-errors.ts'
import type { RetryCause } from './classify.ts'
import type { Client, Sent } from './client.ts'
import type { Governor } from './governor/governor.ts'
import { CUT_OFF, failureText, permitResult } from './outcome-texts.ts'
import type { ApiRequest } from './request.ts'
import { retryDecision } from './retry.ts'
import { FIRST_CONNECTION_MS } from './silence.ts'

/**
 * Sends one request after another, with retries, for commands that read from the API without storing anything. The
 * client, the governor and the retry rules are those of a backfill.
 */
export interface ApiReader {
  /**
   * @param parse converts the answer. When `parse` throws a RetryError, the request is retried.
   * @throws StopError with exit status 77 when the API refuses the key, 69 when the API does not answer, 75 when
   *   `api.max_requests_per_day` is reached
   * @throws the signal's reason when the signal is aborted; an AbortError when a request is in flight at that time
   */
  read<T>(request: ApiRequest, parse: (value: unknown) => T): Promise<ReaderReply<T>>
  /** Requests sent so far, including retries. */
  used(): number
  /**
   * Call it after the last request.
   * @throws StopError with exit status 77 when a route has refused the key, and no request was answered
   */
  requireAccess(): void
  /** Mean response time in ms; undefined before the first answer. */
  answerMs(): number | undefined
}

export type ReaderReply<T> =
  | {
      kind: 'answer'
      value: T
      /** The server's clock in ms since the epoch, precise to a second. */
      serverTime: number | undefined
      /** This machine's clock in ms at the middle of the request. */
      localTime: number
    }
  /** 400, 401 of one route, 403, 404 and every other 4xx that is not retried. */
  | { kind: 'refused'; status: number; message: string; isForeign: boolean }
  /** No usable answer after all retries, or a failure that is not retried. */
  | { kind: 'failed'; code: string; message: string; hint?: string; isForeign?: boolean }

export interface ApiReaderDeps {
  client: Client
  governor: Governor
  clock: Clock
  random: () => number
  /** When no HTTP response has arrived for this long, `read` throws the error with exit status 69. */
  giveUpMs: number
  signal: AbortSignal
  /** Maximum number of attempts, below that of the retry rules, for commands whose result a person waits for. */
  maxAttempts?: number
  /** Called when requests are paused for longer than 3 s. */
  onPause?(untilMs: number): void
}

const NOTICED_PAUSE_MS = 3000

export function createApiReader(deps: ApiReaderDeps): ApiReader {
  const { client, governor, clock, signal, maxAttempts: mostAttempts = Number.POSITIVE_INFINITY } = deps
  let used = 0
  let answers = 0
  let answerMs = 0
  let hasConnected = false
  /** The route that was refused with 401 since the last answer, and what that means if no other route is answered. */
  let refusal: { route: string; error: StopError } | undefined
  let answeredAt = clock.elapsed()

  const sendOnce = async (request: ApiRequest): Promise<Sent> => {
    const asked = clock.elapsed()
    const { pausedUntil, pauseReason } = governor.state()
    if (pauseReason === 'requests-per-day') throw dayLimitReached()
    if (pausedUntil !== undefined && pausedUntil - clock.now() > NOTICED_PAUSE_MS) deps.onPause?.(pausedUntil)
    const permit = await governor.permit(signal)
    if (!permit) throw signal.reason
    // The time spent waiting for a permit does not count as silence of the API.
    answeredAt += clock.elapsed() - asked
    try {
      used += 1
      const sent = await client.send(request, signal)
      permit.settle(permitResult(sent))
      return sent
    } catch (error) {
      permit.settle(CUT_OFF)
      throw error
    }
  }

  const noteSilence = (sent: Sent) => {
    const silent = sent.kind === 'retry' && sent.status === undefined
    if (!silent || sent.cause !== 'unreachable') hasConnected = true
    if (!silent) answeredAt = clock.elapsed()
    const patience = hasConnected ? deps.giveUpMs : Math.min(deps.giveUpMs, FIRST_CONNECTION_MS)
    if (silent && clock.elapsed() - answeredAt >= patience)
      throw noAnswerError(client.access, failureText(sent), false)
  }

  /** One route may refuse the key by itself. The key is refused when two routes do, and none is answered in between. */
  const noteAccess = ({ route }: ApiRequest, sent: Sent) => {
    if (sent.kind === 'answer') refusal = undefined
    if (sent.kind !== 'unauthorized') return
    const error = unauthorized(client.access, sent.message)
    if (refusal && refusal.route !== route) throw error
    refusal = { route, error }
  }

  return {
    used: () => used,
    answerMs: () => (answers === 0 ? undefined : answerMs / answers),
    requireAccess() {
      if (answers === 0 && refusal) throw refusal.error
    },
    async read(request, parse) {
      for (let attempt = 1; ; ) {
        const sent = await sendOnce(request)
        noteSilence(sent)
        noteAccess(request, sent)
        if (sent.kind === 'answer') {
          answers += 1
          answerMs += sent.durationMs
        }
        const outcome = outcomeOf(sent, parse)
        if (!('cause' in outcome)) return outcome
        const decision = retryDecision({ ...outcome, attempt }, deps.random)
        const countsAsAttempt = outcome.cause !== 'throttled' && outcome.cause !== 'unreachable'
        if (!decision.retry || (countsAsAttempt && attempt >= mostAttempts)) return outcome.failed
        if (outcome.cause !== 'throttled') attempt += 1
        await clock.sleep(decision.delayMs, signal)
      }
    },
  }
}

interface TryAgain {
  cause: RetryCause
  waitMs: number | undefined
  failed: Extract<ReaderReply<never>, { kind: 'failed' }>
}

function outcomeOf<T>(sent: Sent, parse: (value: unknown) => T): ReaderReply<T> | TryAgain {
  if (sent.kind === 'unauthorized')
    return { kind: 'refused', status: 401, message: sent.message, isForeign: false }
  if (sent.kind === 'refused') {
    const { status, message, isForeign } = sent
    return { kind: 'refused', status, message, isForeign }
  }
  if (sent.kind === 'fault') return { kind: 'failed', code: sent.code, message: sent.message }
  if (sent.kind === 'retry') {
    const isForeign = sent.isForeign === true
    const failed = { kind: 'failed', code: sent.cause, message: failureText(sent), isForeign } as const
    return { cause: sent.cause, waitMs: sent.waitMs, failed }
  }
  const { serverTime, startedAt, durationMs } = sent
  try {
    return { kind: 'answer', value: parse(sent.value), serverTime, localTime: startedAt + durationMs / 2 }
  } catch (error) {
    if (!(error instanceof ParleyError)) throw error
    const { code, message, hint } = error
    const failed = { kind: 'failed', code, message, ...(hint === undefined ? {} : { hint }) } as const
    return error instanceof RetryError ? { cause: 'garbled', waitMs: undefined, failed } : failed
  }
}

/** The commands that use the reader end at the daily limit. They do not wait for the next day. */
function dayLimitReached(): StopError {
  return new StopError('The daily limit of requests (api.max_requests_per_day) is reached', {
    code: 'day-used-up',
    hint: 'Run the command again after midnight UTC, or raise api.max_requests_per_day.',
    exitStatus: EXIT_STATUS.unfinished,
  })
}
