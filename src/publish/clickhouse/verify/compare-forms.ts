import { countText } from '../../../terminal/wording.ts'
import { formOf } from '../state.ts'
import type { PartRow } from '../state-tables.ts'
import type { DatabaseFaultKind } from './fault.ts'
import type { StoredForm } from './read-forms.ts'

/** Compares the rows that the server has of a table with what the publications recorded. Pure. */

export interface FormFault {
  part: string
  /** Undefined where the fault is about the whole table. */
  writtenIn: number | undefined
  kind: DatabaseFaultKind
  message: string
}

/** A part that a publication shows. */
export interface CheckedPart extends PartRow {
  /** Undefined where an earlier version of parley wrote it. */
  checksum: string | undefined
}

/**
 * @param shown the parts of the table that complete publications show; a part may be there for each of them
 * @param newest the newest publication that had begun before the warehouse was read: later ones may know better what is
 *   purged
 */
export function formFaults(
  shown: readonly CheckedPart[],
  stored: readonly StoredForm[],
  newest: number,
): FormFault[] {
  const forms = new Map(stored.map(form => [keyOf(form), form]))
  const expected = new Map(shown.map(row => [keyOf({ ...row, writtenIn: row.written_in }), row]))
  const damage = [...expected].flatMap(([key, row]): FormFault[] => {
    const fault = damageOf(row, forms.get(key))
    return fault === undefined ? [] : [{ part: row.part, writtenIn: row.written_in, ...fault }]
  })
  const erased = stored
    .filter(({ erased: rows, writtenIn }) => rows > 0 && writtenIn <= newest)
    .map(
      (form): FormFault => ({
        part: form.part,
        writtenIn: form.writtenIn,
        kind: 'erased',
        message: `${countText(form.erased, 'row')} with content that was purged${expected.has(keyOf(form)) ? '' : ', which no publication shows'}`,
      }),
    )
  return [...damage, ...erased]
}

const keyOf = ({ part, writtenIn }: { part: string; writtenIn: number }): string =>
  formOf('', part, writtenIn)

function damageOf(
  { rows, checksum }: CheckedPart,
  form: StoredForm | undefined,
): Pick<FormFault, 'kind' | 'message'> | undefined {
  if (rows > 0 && form === undefined)
    return { kind: 'missing', message: `The part is missing: ${countText(rows, 'row')} expected` }
  const stored = form?.rows ?? 0
  if (stored !== rows)
    return { kind: 'rows', message: `The part has ${countText(stored, 'row')} instead of ${rows}` }
  if (checksum !== undefined && form !== undefined && form.checksum !== checksum)
    return { kind: 'values', message: 'The rows of the part are not those that were published' }
  return undefined
}
