import { type Backoff, backoffMs } from '../base/backoff.ts'
import { type Clock, MINUTE_MS, SECOND_MS } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { HookTarget } from '../config/kinds.ts'
import type { SettingKey } from '../config/settings.ts'
import type { DeliveryEnd } from './announcements.ts'
import type { HookCall } from './call.ts'

/** Calls that are tried until one try succeeds. No caller waits for them. */
export interface Deliveries {
  /** How many more calls may begin now. */
  room(): number
  begin(call: HookCall): void
  /** Ends the tries for a problem. A try that runs is not interrupted, since it may already have reached a person. */
  withdraw(problemId: string): void
  /** Begins no more tries, and interrupts those that still run after a second. */
  close(): Promise<void>
}

export interface DeliveriesDeps {
  clock: Clock
  log: Log
  /** Returns a number from 0 to below 1. */
  random(): number
  /** The value of the event's setting now. */
  targetOf(event: HookCall['event']): HookTarget | undefined
  /** Makes one try. Never rejects. @returns the reason of a failure */
  send(target: HookTarget, call: HookCall, signal: AbortSignal): Promise<string | undefined>
  onEnd(problemId: string, end: DeliveryEnd): void
}

/** The log line of a call that has succeeded. */
export const CALLED = 'Called a hook'

/** Each call occupies a place from its first try to its last, with the waits between. */
const MOST_AT_ONCE = 5
const TRIES = 5
/** The waits between five tries are about 15 minutes together. */
const RETRY: Backoff = { firstMs: MINUTE_MS, mostMs: 8 * MINUTE_MS, jitter: 0.2 }
const GRACE_MS = SECOND_MS

const SETTINGS = {
  problem: 'hooks.on_problem',
  recovered: 'hooks.on_recovered',
} as const satisfies Record<HookCall['event'], SettingKey>

export function createDeliveries(deps: DeliveriesDeps): Deliveries {
  const { clock, onEnd } = deps
  const closing = new AbortController()
  const interrupting = new AbortController()
  const running = new Map<string, { withdrawal: AbortController; ended: Promise<void> }>()
  return {
    room: () => (closing.signal.aborted ? 0 : MOST_AT_ONCE - running.size),
    begin(call) {
      const { id } = call.problem
      const withdrawal = new AbortController()
      const noMore = AbortSignal.any([closing.signal, withdrawal.signal])
      const ended = deliver(call, { noMore, interrupt: interrupting.signal }, deps).then(end => {
        running.delete(id)
        onEnd(id, end)
      })
      running.set(id, { withdrawal, ended })
    },
    withdraw: id => running.get(id)?.withdrawal.abort(),
    async close() {
      closing.abort()
      const all = Promise.all([...running.values()].map(({ ended }) => ended))
      const over = new AbortController()
      await Promise.race([all.finally(() => over.abort()), clock.sleep(GRACE_MS, over.signal)])
      interrupting.abort()
      await all
    },
  }
}

interface DeliverySignals {
  /** Aborted when no more tries may begin. */
  noMore: AbortSignal
  /** Aborted when a try that runs must end. */
  interrupt: AbortSignal
}

async function deliver(
  call: HookCall,
  { noMore, interrupt }: DeliverySignals,
  { clock, log, random, targetOf, send }: DeliveriesDeps,
): Promise<DeliveryEnd> {
  const setting = SETTINGS[call.event]
  for (let attempt = 1; ; attempt += 1) {
    const target = targetOf(call.event)
    if (target === undefined) return 'delivered'
    const reason = await send(target, call, interrupt)
    if (reason === undefined) {
      log.info(CALLED, { setting, problem: call.problem.id })
      return 'delivered'
    }
    if (noMore.aborted) return 'withdrawn'
    if (attempt === TRIES) {
      log.warn('A hook failed; this call is given up', { setting, reason, attempt })
      return 'failed'
    }
    const waitMs = Math.round(backoffMs(RETRY, attempt, random))
    log.warn('A hook failed; it is called again', { setting, reason, attempt, wait_ms: waitMs })
    await clock.sleep(waitMs, noMore)
    if (noMore.aborted) return 'withdrawn'
  }
}
