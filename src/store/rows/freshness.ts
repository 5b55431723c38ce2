export type Freshness = ReturnType<typeof createFreshness>

/**
 * Keeps an older answer from overwriting a newer one. Each request gets the next number as its ticket when it starts.
 * The ticket that wrote a key is remembered only while an earlier request is in flight, so usually none is remembered.
 * The tickets are not stored: after a crash, no answer to an earlier request can arrive.
 */
export function createFreshness() {
  let last = 0
  /** By ticket: how many calls of `end` the ticket still needs. */
  const underWay = new Map<number, number>()
  const written = new Map<string, number>()

  const oldest = () => {
    // A map iterates in the order of insertion, so the first ticket is the oldest.
    for (const ticket of underWay.keys()) return ticket
    return Number.POSITIVE_INFINITY
  }

  const nameOf = (table: string, key: string) => `${table}\u0000${key}`
  /** Whether a request that started later has already written this key. */
  const isOutdated = (ticket: number, table: string, key: string) =>
    (written.get(nameOf(table, key)) ?? 0) > ticket

  return {
    isOutdated,
    begin() {
      last += 1
      underWay.set(last, 1)
      return last
    },
    /** Requires one more `end` for this ticket: an answer in several pages keeps the ticket of its first page. */
    prolong(ticket: number) {
      underWay.set(ticket, (underWay.get(ticket) ?? 0) + 1)
    },
    end(ticket: number) {
      const ends = underWay.get(ticket) ?? 0
      if (ends > 1) {
        underWay.set(ticket, ends - 1)
        return
      }
      const wasOldest = oldest() === ticket
      underWay.delete(ticket)
      if (!wasOldest) return
      if (underWay.size === 0) written.clear()
      const limit = oldest()
      for (const [key, at] of written) if (at <= limit) written.delete(key)
    },
    /** Returns false when the answer is outdated for this key. Else notes the write, and returns true. */
    admits(ticket: number, table: string, key: string) {
      if (isOutdated(ticket, table, key)) return false
      if (oldest() < ticket) written.set(nameOf(table, key), ticket)
      return true
    },
    /** Makes all requests in flight outdated for this key: they started before the key's row was deleted or withheld. */
    close(table: string, key: string) {
      if (underWay.size > 0) written.set(nameOf(table, key), last + 1)
    },
  }
}
