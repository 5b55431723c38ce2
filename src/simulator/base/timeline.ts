/** A position in a list that is ordered newest first: after the item `index` at the instant `at`. */
export interface Position {
  at: number
  index: number
}

/** Items in time order: newest first, equal times by descending index. Fast while `place` is called for few items. */
export interface Timeline {
  timeOf(index: number): number
  /** Sets the time of a new or an existing item, which moves the item to its position in the order. */
  place(index: number, micros: number): void
  /**
   * Calls `visit` with each item from `newest` to `oldest`, both inclusive, until `visit` returns false. With `after`,
   * the scan begins after that position.
   */
  scan(range: TimelineRange, visit: (index: number) => boolean): void
}

export interface TimelineRange {
  after?: Position | undefined
  oldest?: number | undefined
  newest?: number | undefined
}

export function createTimeline(times: Float64Array): Timeline {
  const order = sortedByTime(times)
  const placed = new Map<number, number>()
  /** Items that `place` has moved or added, oldest first. */
  const placedByTime: Position[] = []
  const timeOf = (index: number): number => placed.get(index) ?? times[index] ?? 0

  const baseBefore = (position: Position): number =>
    countWhile(order.length, slot => {
      const index = order[slot] ?? 0
      return isOlder(times[index] ?? 0, index, position)
    })

  return {
    timeOf,
    place: (index, micros) => {
      if (placed.has(index)) {
        placedByTime.splice(
          placedByTime.findIndex(each => each.index === index),
          1,
        )
      }
      placed.set(index, micros)
      placedByTime.splice(placedBefore(placedByTime, { at: micros, index }), 0, { at: micros, index })
    },
    scan: ({ after, oldest, newest }, visit) => {
      const start = startOf(after, newest)
      let base = baseBefore(start) - 1
      let added = placedBefore(placedByTime, start) - 1
      for (;;) {
        while (base >= 0 && placed.has(order[base] ?? 0)) base--
        const fromBase = order[base]
        const fromPlaced = placedByTime[added]
        if (fromBase === undefined && fromPlaced === undefined) return
        const takeBase =
          fromPlaced === undefined ||
          (fromBase !== undefined && !isOlder(times[fromBase] ?? 0, fromBase, fromPlaced))
        const index = takeBase ? (fromBase ?? 0) : (fromPlaced?.index ?? 0)
        if (oldest !== undefined && timeOf(index) < oldest) return
        if (!visit(index)) return
        if (takeBase) base--
        else added--
      }
    },
  }
}

function startOf(after: Position | undefined, newest: number | undefined): Position {
  const top = { at: newest ?? Number.POSITIVE_INFINITY, index: Number.POSITIVE_INFINITY }
  return after && isOlder(after.at, after.index, top) ? after : top
}

function isOlder(at: number, index: number, than: Position): boolean {
  return at < than.at || (at === than.at && index < than.index)
}

function placedBefore(placed: readonly Position[], position: Position): number {
  return countWhile(placed.length, slot => {
    const each = placed[slot]
    return each !== undefined && isOlder(each.at, each.index, position)
  })
}

/** Counts the slots that fulfil a condition, by binary search: those slots must come before all others. */
export function countWhile(length: number, fulfils: (slot: number) => boolean): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (fulfils(middle)) low = middle + 1
    else high = middle
  }
  return low
}

const DIGIT = 65_536

/** Indices by ascending time, equal times by ascending index. A radix sort, since callback comparisons are slow. */
export function sortedByTime(times: Float64Array): Uint32Array {
  let least = Number.POSITIVE_INFINITY
  let most = Number.NEGATIVE_INFINITY
  for (const time of times) {
    if (time < least) least = time
    if (time > most) most = time
  }
  let order = Uint32Array.from(times.keys())
  let spare = new Uint32Array(times.length)
  for (let unit = 1; unit <= most - least; unit *= DIGIT) {
    const starts = new Uint32Array(DIGIT + 1)
    const digit = (index: number): number => Math.floor(((times[index] ?? 0) - least) / unit) % DIGIT
    for (const index of order) {
      const slot = digit(index) + 1
      starts[slot] = (starts[slot] ?? 0) + 1
    }
    for (let i = 1; i <= DIGIT; i++) starts[i] = (starts[i] ?? 0) + (starts[i - 1] ?? 0)
    for (const index of order) {
      const slot = digit(index)
      const target = starts[slot] ?? 0
      spare[target] = index
      starts[slot] = target + 1
    }
    ;[order, spare] = [spare, order]
  }
  return order
}
