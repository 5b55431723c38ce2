import { dropParts } from '../removal.ts'
import { type DatabasePlace, dropTable } from '../statements.ts'

/** What `parley publish verify` finds wrong with a ClickHouse database, in words for people. Pure. */

export type DatabaseFaultKind = 'missing' | 'rows' | 'values' | 'unreadable' | 'view' | 'erased'

export interface DatabaseVerifyFault {
  /** The published table. */
  table: string
  /** A month or a range of keys; null for rows without a time, and where the fault is not about one part. */
  part: string | null
  /** The table or view of the database. */
  source: string
  /** The publication that wrote the rows; null where the fault is not about one part. */
  written_in: number | null
  kind: DatabaseFaultKind
  /** What was expected and what was found. */
  message: string
  /** What to do. */
  hint: string
}

export interface HintPlace {
  place: DatabasePlace
  isModern: boolean
  /** The address as the user named it. */
  target: string
}

/** @param form the rows of a part that one publication wrote */
export function hintFor(
  { place, isModern, target }: HintPlace,
  kind: DatabaseFaultKind,
  form: { source: string; part: string; writtenIn: number | undefined },
): string {
  const publish = `parley publish '${target}'`
  const twice = `${publish} --full --keep 2 twice: the first time writes the rows again, the second drops earlier publications, which may name the lost ones.`
  switch (kind) {
    case 'view':
      return `Run ${publish}: it creates the view again.`
    case 'erased':
      return `Run ${publish}: it writes the part without this content and drops the earlier rows.`
    case 'missing':
      return `Run ${twice}`
    case 'unreadable':
      return `Restore the table, or run ${dropTable(place, form.source, isModern).join('; ')} on the server, then ${twice}`
    case 'rows':
    case 'values':
      return `Run ${dropParts(place, [{ ...form, writtenIn: form.writtenIn ?? 0, rows: 0 }]).join('; ')} on the server, then ${twice}`
  }
}
