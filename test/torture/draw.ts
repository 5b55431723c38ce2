/** Random numbers that are the same for the same seed. */
export interface Draw {
  /** A whole number from 0 up to, but not including, `end`. */
  below(end: number): number
  pick<T>(list: readonly [T, ...T[]]): T
}

export function createDraw(seed: number): Draw {
  let state = (seed * 0x9e3779b1) >>> 0
  const unit = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }
  const below = (end: number): number => Math.floor(unit() * end)
  return { below, pick: list => list[below(list.length)] ?? list[0] }
}
