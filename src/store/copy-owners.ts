import { askProgram } from './child-program.ts'

/** What the process of `ownersOf` is told. */
export interface OwnersOrder {
  paths: readonly string[]
}

/** What a whole copy of a warehouse says of itself. Both are undefined where it cannot be read. */
export interface Owner {
  /** Of the warehouse that it was made of. */
  identity?: string
  /** When the last maintenance before it ended, as an instant. */
  maintainedAt?: string
}

/** The compiled one. Where only sources are, as in tests, there is none. */
const PROGRAM = new URL('./copy-owners-worker.js', import.meta.url)

/**
 * Reads whose copies these are, in their order. A process of its own opens them, since they may lie on a disk that does
 * not answer.
 * @throws Error when the process is cut off
 */
export function ownersOf(paths: readonly string[], signal: AbortSignal, program = PROGRAM): Promise<Owner[]> {
  const order: OwnersOrder = { paths }
  return askProgram({ program, order, signal, cutOff: how => new Error(`Reading old copies failed: ${how}`) })
}

/**
 * A folder may be shared with a warehouse whose file has the same name: only our own copies are ours to remove. Those
 * that cannot be read are ours in the folder that is named after our database.
 * @param own the identity of this warehouse
 */
export function isOurs(
  { identity, isInOwnFolder }: { identity: string | undefined; isInOwnFolder: boolean },
  own: string | undefined,
): boolean {
  return identity === undefined || own === undefined ? isInOwnFolder : identity === own
}
