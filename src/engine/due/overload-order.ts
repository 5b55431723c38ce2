import type { Segment } from '../../store/sync/segments.ts'

/**
 * Chooses which of several due segments of one list is read next. While more falls due than the API allows, a fixed
 * order would read the first segments again and again and never reach the last.
 *
 * - First reads, repeats and failed reads take turns: none of these kinds can use up all requests.
 * - First reads keep the given order. Each happens only once.
 * - Of repeats, the one that is overdue by the largest share of its interval goes first. An overload then stretches all
 *   intervals by the same factor.
 * - Of failed reads, the one that has failed least often goes first. So both parts of a cut segment are read before one
 *   of them is cut again. If only one part fails, the other shows that the list can be read.
 *
 * @param overdue by how many of its intervals a segment is overdue
 * @returns a function that chooses one of the segments that are due
 */
export function createSegmentTurns<Part extends Standing>(
  overdue: (part: Part) => number,
): (due: readonly Part[]) => Part | undefined {
  let last: TurnKind = 'failed'
  const choose: Readonly<Record<TurnKind, (due: readonly Part[]) => Part | undefined>> = {
    first: ([next]) => next,
    repeat: due => least(due, part => -overdue(part)),
    failed: due => least(due, ({ attempts }) => attempts),
  }
  return due => {
    const turn = KINDS.indexOf(last) + 1
    for (const kind of [...KINDS.slice(turn), ...KINDS.slice(0, turn)]) {
      const next = choose[kind](due.filter(part => kindOf(part) === kind))
      if (!next) continue
      last = kind
      return next
    }
    return undefined
  }
}

type Standing = Pick<Segment, 'listedAt' | 'attempts'>

type TurnKind = 'first' | 'repeat' | 'failed'

const KINDS: readonly TurnKind[] = ['first', 'repeat', 'failed']

function kindOf({ attempts, listedAt }: Standing): TurnKind {
  if (attempts > 0) return 'failed'
  return listedAt === null ? 'first' : 'repeat'
}

/** The part with the smallest value; if several have it, the first of them. */
function least<Part>(parts: readonly Part[], of: (part: Part) => number): Part | undefined {
  let best: { part: Part; value: number } | undefined
  for (const part of parts) {
    const value = of(part)
    if (best === undefined || value < best.value) best = { part, value }
  }
  return best?.part
}
