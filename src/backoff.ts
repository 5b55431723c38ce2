/**
 * How long to wait after a failure: the only place that computes a growing wait. Pure. The wait doubles with every
 * failure in a row, up to a limit, and a share of it is random, so that processes that failed together do not come
 * back together.
 */
export interface Backoff {
  /** The longest wait after the first failure, in ms. */
  firstMs: number
  /** The longest wait at all, in ms. */
  mostMs: number
  /** The share of the wait that is random: 1 may come back at once, 0.5 waits half of it at least, 0 is exact. */
  jitter: number
}

/**
 * @param failures failures in a row, 1 after the first
 * @param random a number from 0 up to 1; not called without jitter
 */
export function backoffMs({ jitter, ...growth }: Backoff, failures: number, random: () => number): number {
  const longest = longestBackoffMs(growth, failures)
  return jitter === 0 ? longest : longest * (1 - jitter + jitter * random())
}

/** The wait without its random share: for due times in the database, which nothing has to spread. */
export function longestBackoffMs(
  { firstMs, mostMs }: Pick<Backoff, 'firstMs' | 'mostMs'>,
  failures: number,
): number {
  return failures < 1 ? 0 : Math.min(firstMs * 2 ** (failures - 1), mostMs)
}
