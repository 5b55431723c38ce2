import type { ExitStatus } from '../../errors.ts'

/** What a check found. `note`: worth knowing; `warning`: works, but should not be so; `wrong`: a backfill would fail. */
export interface Finding {
  mark: 'ok' | 'note' | 'warning' | 'wrong'
  check: string
  found: string
  /** What a person can do about it. */
  hint?: string
  /** With `wrong`: the status that a backfill would end with. */
  status?: ExitStatus
}

/** Makes findings for one check. */
export function finder(check: string) {
  return {
    ok: (found: string): Finding => ({ mark: 'ok', check, found }),
    note: (found: string, hint?: string): Finding => ({ mark: 'note', check, found, ...(hint && { hint }) }),
    warning: (found: string, hint?: string): Finding => ({
      mark: 'warning',
      check,
      found,
      ...(hint && { hint }),
    }),
    wrong: (found: string, status: ExitStatus, hint: string): Finding => ({
      mark: 'wrong',
      check,
      found,
      status,
      hint,
    }),
  }
}
