import type { Clock } from '../base/clock.ts'

/** How long requests in flight may take to finish after a stop. */
const GRACE_MS = 10_000

/**
 * A signal that aborts `GRACE_MS` after the given one.
 * @param onStop called with `GRACE_MS` as soon as the given signal aborts
 */
export function afterGrace(
  clock: Clock,
  signal: AbortSignal,
  onStop: (graceMs: number) => void = () => undefined,
): AbortSignal {
  const cancel = new AbortController()
  const stop = () => {
    onStop(GRACE_MS)
    void clock.sleep(GRACE_MS).then(() => cancel.abort())
  }
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
  return cancel.signal
}
