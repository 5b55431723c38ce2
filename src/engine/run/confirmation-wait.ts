import type { ResourceName } from '../../declare/resource-names.ts'
import type { EngineContext } from '../context/context.ts'
import { confirmationMs } from '../deletions/recheck.ts'

/**
 * A backfill requests suspected rows once more, minutes later. Until then no other request is left, so the run waits.
 */
export interface ConfirmationWait {
  /** Waits if suspected rows need it. Returns whether more requests are due. */
  wait(): Promise<boolean>
  /** End of the wait, in ms since the epoch; undefined when there is no wait. */
  until(): number | undefined
}

export interface ConfirmationWaitDeps {
  context: EngineContext
  resources: readonly ResourceName[]
  stopNew: AbortSignal
  /** Called with the length of each wait, in ms. */
  onWaited(ms: number): void
}

/** If replicas of the API disagree, suspicions may arise indefinitely. After this many waits, the next run decides. */
const MOST_WAITS = 4

export function createConfirmationWait({
  context,
  resources,
  stopNew,
  onWaited,
}: ConfirmationWaitDeps): ConfirmationWait {
  const { clock, log } = context
  let waits = 0
  let until: number | undefined
  return {
    async wait() {
      const ms = confirmationMs(context, resources)
      if (ms === undefined || waits >= MOST_WAITS || stopNew.aborted) return false
      waits += 1
      until = clock.now() + ms
      log.info('Waiting to confirm suspected deletions', { wait_ms: Math.round(ms) })
      await clock.sleep(ms, stopNew)
      onWaited(ms)
      until = undefined
      return !stopNew.aborted
    },
    until: () => until,
  }
}
