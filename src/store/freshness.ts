/**
 * Keeps an older answer from overwriting a newer one. Requests get growing tickets when they start; a key that was
 * written remembers its ticket only while a request that started earlier is still under way, so that in the usual
 * case nothing is remembered. After a crash nothing older can arrive, so memory is enough.
 */
export interface Freshness {
  begin(): number
  end(ticket: number): void
  /** It is under way until it has ended once more: an answer in several pages is as old as the first of them. */
  prolong(ticket: number): void
  /** Whether a request that started later already wrote this key. */
  isOutdated(ticket: number, table: string, key: string): boolean
  /** False when it is outdated; else the key counts as written by this request. */
  admits(ticket: number, table: string, key: string): boolean
  /** What is under way may not write this key any more: it was asked for before the row was withdrawn. */
  close(table: string, key: string): void
}

export function createFreshness(): Freshness {
  let last = 0
  /** How often each has to end. */
  const underWay = new Map<number, number>()
  const written = new Map<string, number>()

  const oldest = () => {
    // A map keeps the order of insertion, and tickets grow.
    for (const ticket of underWay.keys()) return ticket
    return Number.POSITIVE_INFINITY
  }

  const nameOf = (table: string, key: string) => `${table}\u0000${key}`
  const isOutdated: Freshness['isOutdated'] = (ticket, table, key) =>
    (written.get(nameOf(table, key)) ?? 0) > ticket

  return {
    isOutdated,
    begin() {
      last += 1
      underWay.set(last, 1)
      return last
    },
    prolong(ticket) {
      underWay.set(ticket, (underWay.get(ticket) ?? 0) + 1)
    },
    end(ticket) {
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
    admits(ticket, table, key) {
      if (isOutdated(ticket, table, key)) return false
      if (oldest() < ticket) written.set(nameOf(table, key), ticket)
      return true
    },
    close(table, key) {
      if (underWay.size > 0) written.set(nameOf(table, key), last + 1)
    },
  }
}
