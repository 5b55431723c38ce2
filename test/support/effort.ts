/** How many cases of each property are tried: all in CI, a fifth otherwise, and ten times as many by `npm run test:long`. */
const EFFORT = Number(process.env['PARLEY_TEST_EFFORT'] ?? (process.env['CI'] ? 1 : 0.2))

/** The number of cases to try of these, at least one. */
export const runs = (cases: number): number => Math.max(1, Math.ceil(cases * EFFORT))

/** As many of these cases, spread evenly over all of them. */
export function share<T>(cases: readonly T[]): T[] {
  const every = cases.length / Math.min(runs(cases.length), cases.length)
  return cases.filter((_, at) => Math.floor(at / every) !== Math.floor((at - 1) / every))
}
