import { runProgram } from '../database/child-program.ts'

/** Input of the child process. */
export interface OwnersInput {
  paths: readonly string[]
}

/** The warehouse that a copy was made of. All fields are undefined when the copy cannot be read. */
export interface Owner {
  /** Random id of the warehouse. */
  identity?: string
  /** End of the last maintenance before the copy was made: an RFC 3339 instant. */
  maintainedAt?: string
  /** When content had last been purged when the copy was made. The copy has what was purged later. */
  purgedAt?: string
}

/** The compiled program. It is missing when parley runs from its sources, as in tests. */
const PROGRAM = new URL('./copy-owners-worker.js', import.meta.url)

/**
 * Reads the owners of these copies, in the same order. A child process opens them, since their disk may not answer.
 * @throws Error when the child ends without an answer
 */
export function ownersOf(paths: readonly string[], signal: AbortSignal, program = PROGRAM): Promise<Owner[]> {
  const input: OwnersInput = { paths }
  return runProgram({
    program,
    input: input,
    signal,
    noAnswerError: how => new Error(`Reading old copies failed: ${how}`),
  })
}

/**
 * Whether this warehouse may remove a copy. Two warehouses whose files have the same name may share a folder, so the
 * identity decides. When one of the two identities is unknown, `isInOwnFolder` decides: true for a copy in a place that
 * is named after this database.
 * @param own identity of this warehouse
 */
export function isOurs(
  { identity, isInOwnFolder }: { identity: string | undefined; isInOwnFolder: boolean },
  own: string | undefined,
): boolean {
  return identity === undefined || own === undefined ? isInOwnFolder : identity === own
}

/**
 * Whether a copy has content that a later copy of the same warehouse no longer has, because it was purged in between.
 * False when one of them cannot be read.
 */
export function hasPurgedSince(earlier: Owner | undefined, later: Owner | undefined): boolean {
  if (earlier?.identity === undefined || later?.purgedAt === undefined) return false
  return earlier.identity === later.identity && (earlier.purgedAt ?? '') < later.purgedAt
}
