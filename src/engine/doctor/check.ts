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
    warning: (found: string, hint: string): Finding => ({ mark: 'warning', check, found, hint }),
    wrong: (found: string, status: ExitStatus, hint: string): Finding => ({
      mark: 'wrong',
      check,
      found,
      status,
      hint,
    }),
  }
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']

export function sizeText(bytes: number): string {
  const power = bytes < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10))
  const value = bytes / 1024 ** power
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`
}
