import type { ExitStatus } from '../base/errors.ts'
import type { StatusMeanings } from '../declare/resource.ts'

/**
 * The result of a check. The checks are in machine.ts, data.ts, api.ts, publishing.ts and commands/doctor.ts. The marks
 * besides `ok`:
 * - `note`: for information;
 * - `warning`: a backfill would run, but something should be changed;
 * - `wrong`: a backfill would fail, or a setting fits nothing in the CRM.
 */
export interface Finding {
  mark: 'ok' | 'note' | 'warning' | 'wrong'
  check: string
  found: string
  /** What to do about the finding. */
  hint?: string
  /** Only with `wrong`: the exit status that a backfill would have. */
  status?: ExitStatus
  /** Only of `parley doctor --data`: the rows that the finding is about. */
  data?: FoundRows
}

export interface FoundRows {
  table: string
  columns: readonly string[]
  /** How many rows do not meet the test. */
  rows: number
  /** How many rows were tested. */
  of?: number
  /** The keys of the first of these rows. */
  keys: readonly string[]
}

export function findingsOf(check: string) {
  const marked =
    (mark: Finding['mark']) =>
    (found: string, hint?: string): Finding => ({ mark, check, found, ...(hint && { hint }) })
  return {
    ok: (found: string): Finding => ({ mark: 'ok', check, found }),
    note: marked('note'),
    warning: marked('warning'),
    wrong: (found: string, status: ExitStatus, hint: string): Finding => ({
      mark: 'wrong',
      check,
      found,
      status,
      hint,
    }),
  }
}

export type CheckFindings = ReturnType<typeof findingsOf>

/** The meaning of each kind of refusal that a resource can declare as expected. */
export const MEANINGS: Readonly<Record<NonNullable<StatusMeanings[number]>, string>> = {
  absent: 'not published (allowed)',
  withheld: 'withheld (allowed): only the attendees of the meeting may read it',
  unavailable: 'not offered to this workspace (allowed)',
}

export const NEWER_VERSION_HINT = 'The API may have changed: install the newest version of parley.'

const REFUSED_HINTS: Readonly<Record<number, string>> = {
  400: NEWER_VERSION_HINT,
  401: 'The API accepts the key elsewhere. Run parley doctor again. If the refusal remains, ask the provider of the API what the key may read, or leave the resource out (sync.resources, or parley backfill --skip).',
  403: 'Ask an administrator of the workspace for read access, or leave the resource out (sync.resources, or parley backfill --skip).',
  404: 'Check api.base_url. If the workspace does not offer this, leave the resource out (sync.resources, or parley backfill --skip).',
}

export const refusedHint = (status: number): string =>
  REFUSED_HINTS[status] ?? 'Look the status up in the API documentation.'
