import type { Segment } from '../../store/sync/segments.ts'

/**
 * Which of several due segments of one list is read next. For as long as more falls due than the API allows, a fixed
 * order would read the first of them again and again and never reach the last.
 *
 * - First reads, repeats and failed reads take turns: none of these kinds can use up all requests.
 * - First reads keep the given order. They come to an end.
 * - Of repeats, the one goes first that is overdue for the largest share of its own interval: an overload stretches all
 *   intervals alike.
 * - Of failed reads, the one goes first that has failed least often. Both parts of a cut segment are read before a
 *   further cut: one of them tells whether the list answers at all.
 */
export interface Turns<Part extends Standing> {
  /** Chooses one of the segments that are due. */
  take(due: readonly Part[]): Part | undefined
}

type Standing = Pick<Segment, 'listedAt' | 'attempts'>

type Kind = 'first' | 'repeat' | 'failed'

const KINDS: readonly Kind[] = ['first', 'repeat', 'failed']

/** @param overdue for how many of its intervals a segment is overdue */
export function createTurns<Part extends Standing>(overdue: (part: Part) => number): Turns<Part> {
  let last: Kind = 'failed'
  const choose: Readonly<Record<Kind, (due: readonly Part[]) => Part | undefined>> = {
    first: ([next]) => next,
    repeat: due => least(due, part => -overdue(part)),
    failed: due => least(due, ({ attempts }) => attempts),
  }
  return {
    take(due) {
      const turn = KINDS.indexOf(last) + 1
      for (const kind of [...KINDS.slice(turn), ...KINDS.slice(0, turn)]) {
        const next = choose[kind](due.filter(part => kindOf(part) === kind))
        if (!next) continue
        last = kind
        return next
      }
      return undefined
    },
  }
}

function kindOf({ attempts, listedAt }: Standing): Kind {
  if (attempts > 0) return 'failed'
  return listedAt === null ? 'first' : 'repeat'
}

/** The first of those with the least value. */
function least<Part>(parts: readonly Part[], of: (part: Part) => number): Part | undefined {
  let best: { part: Part; value: number } | undefined
  for (const part of parts) {
    const value = of(part)
    if (best === undefined || value < best.value) best = { part, value }
  }
  return best?.part
}
