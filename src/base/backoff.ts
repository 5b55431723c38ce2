/**
 * How long to wait after a failure. Every wait that grows with failures is computed here: it doubles with each failure
 * in a row, up to a limit. A share of it is random, so that processes that failed at the same time do not retry at
 * the same time. Pure.
 */
export interface Backoff {
  /** The longest wait after the first failure, in ms. */
  firstMs: number
  /** The upper limit of the wait, in ms. */
  mostMs: number
  /** Random share, from 0 to 1: with 1 the wait may be 0, with 0.5 it is at least half, with 0 it is not random. */
  jitter: number
}

/**
 * @param failures failures in a row, 1 after the first
 * @param random returns a number from 0 to below 1; not called when jitter is 0
 */
export function backoffMs({ jitter, ...growth }: Backoff, failures: number, random: () => number): number {
  const longest = longestBackoffMs(growth, failures)
  return jitter === 0 ? longest : longest * (1 - jitter + jitter * random())
}

/** The wait without a random share. For waits that only one process has, such as due times in the database. */
export function longestBackoffMs(
  { firstMs, mostMs }: Pick<Backoff, 'firstMs' | 'mostMs'>,
  failures: number,
): number {
  return failures < 1 ? 0 : Math.min(firstMs * 2 ** (failures - 1), mostMs)
}
