import { shellWord } from '../../base/safe-text.ts'

/** What `parley publish verify` finds wrong with a target, in words for people. Pure. */

export type VerifyFaultKind =
  | 'missing'
  | 'size'
  | 'unreadable'
  | 'rows'
  | 'values'
  | 'bytes'
  | 'snapshot'
  | 'table'
  | 'hint'
  | 'erased'
  | 'leftover'

export interface VerifyFault {
  /** The folder of the table. */
  table: string
  /** A month or a range of keys; null for rows without a time, and if the fault is not in one part. */
  part: string | null
  /** The path of the file in the target. */
  file: string
  kind: VerifyFaultKind
  /** What was expected and what was found. */
  message: string
  hint: string
}

/** A fault without its hint, which follows from the kind. */
export type FoundFault = Omit<VerifyFault, 'hint'>

/** Whether the next publication mends the fault by itself. */
export const isMendedByPublishing = ({ kind }: Pick<VerifyFault, 'kind'>): boolean =>
  kind === 'erased' || kind === 'leftover' || kind === 'hint'

/** @param target as the user named it */
export function hintFor(kind: VerifyFaultKind, target: string): string {
  const publish = `parley publish ${shellWord(target)}`
  switch (kind) {
    case 'erased':
      return `Run ${publish}: it writes the part without this content and removes the earlier files.`
    case 'leftover':
      return `Run ${publish}: it removes the file.`
    case 'hint':
      return `Run ${publish}: it writes the file again.`
    case 'missing':
      return `Restore the file, or run ${publish} --keep 1: it writes the rows again and drops earlier publications, which may name the file.`
    case 'table':
      return `Restore the folder, or run ${publish}: it writes the table again, without its earlier publications.`
    case 'snapshot':
      return `Restore the metadata of the table, or publish to an empty folder or prefix.`
    default:
      return `Restore the file, or remove it and run ${publish} --keep 1: it writes the rows again and drops earlier publications, which may name the file.`
  }
}
