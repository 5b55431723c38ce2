import { setTimeout as pause } from 'node:timers/promises'

/** Far more than anything that is waited for needs, also on a busy machine. */
const BOUND_MS = 90_000
const BETWEEN_LOOKS_MS = 100

/**
 * Looks again and again until what is seen is what was waited for, or a generous bound has passed. Gives what was
 * seen last, so that an assertion on it shows what is still wrong.
 */
export async function until<Seen>(
  look: () => Seen | Promise<Seen>,
  isIt: (seen: Seen) => boolean,
  boundMs = BOUND_MS,
): Promise<Seen> {
  const end = performance.now() + boundMs
  for (;;) {
    const seen = await look()
    if (isIt(seen) || performance.now() > end) return seen
    await pause(BETWEEN_LOOKS_MS)
  }
}
