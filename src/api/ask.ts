import type { Clock } from '../clock.ts'
import { EXIT_STATUS, ParleyError, RetryError, StopError } from '../errors.ts'
import { type ApiAccess, noAnswer, unauthorized } from './access.ts'
import type { RetryCause } from './classify.ts'
import type { Client, Sent } from './client.ts'
import type { Governor } from './governor.ts'
import type { ApiRequest } from './request.ts'
import { retryDecision } from './retry.ts'
import { failureText, permitResult } from './verdict.ts'

/**
 * One request after another, each until it has an answer: for commands that look at the API without storing
 * anything. The client, the governor and the retry rules are those of a backfill.
 */
export interface Asker {
  /**
   * @param read makes something of the answer; its RetryError means that the answer is none, and is asked for again
   * @throws StopError 77 when the key is refused, 69 when nothing answers, 75 when the owner's ceiling for the day is
   * reached; the signal's reason when it is aborted
   */
  ask<T>(request: ApiRequest, read: (value: unknown) => T): Promise<Reply<T>>
  /** Requests sent so far, repeated ones included. */
  used(): number
  /** Mean time of an answer in ms; undefined before the first. */
  answerMs(): number | undefined
}

export type Reply<T> =
  | {
      kind: 'answer'
      value: T
      /** The server's clock in ms, whole seconds, and this machine's in the middle of the request. */
      serverTime: number | undefined
      localTime: number
    }
  /** 400, 403, 404 and every other 4xx that a repetition does not cure. */
  | { kind: 'refused'; status: number; message: string; isForeign: boolean }
  /** Asked as often as the rules allow, and still no answer; or a fault that asking again does not cure. */
  | { kind: 'failed'; code: string; message: string; hint?: string; isForeign?: boolean }

export interface AskerDeps {
  client: Client
  governor: Governor
  clock: Clock
  random: () => number
  /** So long without any answer, and the API counts as unreachable. */
  giveUpMs: number
  signal: AbortSignal
  /** Fewer attempts than the rules allow, where a person waits for the verdict. */
  mostAttempts?: number
  /** Told when the API wants a wait that a person would notice. */
  onPause?(untilMs: number): void
}

/** The first request of all must at least connect within this time. */
const FIRST_CONNECTION_MS = 10_000

const NOTICED_PAUSE_MS = 3000

export function createAsker(deps: AskerDeps): Asker {
  const { client, governor, clock, signal, mostAttempts = Number.POSITIVE_INFINITY } = deps
  let used = 0
  let answers = 0
  let answerMs = 0
  let connected = false
  let heardAt = clock.elapsed()

  const sendOnce = async (request: ApiRequest): Promise<Sent> => {
    const asked = clock.elapsed()
    const { pausedUntil, pauseReason } = governor.state()
    if (pauseReason === 'requests-per-day') throw dayUsedUp()
    if (pausedUntil !== undefined && pausedUntil - clock.now() > NOTICED_PAUSE_MS) deps.onPause?.(pausedUntil)
    const permit = await governor.permit(signal)
    if (!permit) throw signal.reason
    // Waiting for a permit is no silence.
    heardAt += clock.elapsed() - asked
    try {
      used += 1
      const sent = await client.send(request, signal)
      permit.settle(permitResult(sent))
      return sent
    } catch (error) {
      permit.cancel()
      throw error
    }
  }

  const listen = (sent: Sent) => {
    const silent = sent.kind === 'retry' && sent.status === undefined
    if (!silent || sent.cause !== 'unreachable') connected = true
    if (!silent) heardAt = clock.elapsed()
    const patience = connected ? deps.giveUpMs : Math.min(deps.giveUpMs, FIRST_CONNECTION_MS)
    if (silent && clock.elapsed() - heardAt >= patience)
      throw noAnswer(client.access, failureText(sent), false)
  }

  return {
    used: () => used,
    answerMs: () => (answers === 0 ? undefined : answerMs / answers),
    async ask(request, read) {
      for (let attempt = 1; ; ) {
        const sent = await sendOnce(request)
        listen(sent)
        if (sent.kind === 'answer') {
          answers += 1
          answerMs += sent.durationMs
        }
        const outcome = understand(sent, read, client.access)
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
  failed: Extract<Reply<never>, { kind: 'failed' }>
}

function understand<T>(sent: Sent, read: (value: unknown) => T, access: ApiAccess): Reply<T> | TryAgain {
  if (sent.kind === 'unauthorized') throw unauthorized(access, sent.message)
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
    return { kind: 'answer', value: read(sent.value), serverTime, localTime: startedAt + durationMs / 2 }
  } catch (error) {
    if (!(error instanceof ParleyError)) throw error
    const { code, message, hint } = error
    const failed = { kind: 'failed', code, message, ...(hint === undefined ? {} : { hint }) } as const
    return error instanceof RetryError ? { cause: 'garbled', waitMs: undefined, failed } : failed
  }
}

/** A command that only looks does not wait until midnight. */
function dayUsedUp(): StopError {
  return new StopError("The day's requests (api.max_requests_per_day) are used up", {
    code: 'day-used-up',
    hint: 'Run it again after midnight UTC, or raise api.max_requests_per_day.',
    exitStatus: EXIT_STATUS.unfinished,
  })
}
