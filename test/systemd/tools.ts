import { spawnSync } from 'node:child_process'

const PACKAGES = {
  'systemd-notify': 'systemd 252 or newer, in the package systemd',
  'systemd-analyze': 'systemd 252 or newer, in the package systemd',
  'systemd-sysusers': 'systemd 252 or newer, in the package systemd',
  sqlite3: 'in the package sqlite3',
  python3: 'in the package python3',
  setpriv: 'in the package util-linux',
  gcc: 'in the package gcc',
  promtool: 'in the package prometheus',
} as const

/** Fails when a program is missing without which the tests of a file prove nothing. */
export function requirePrograms(...programs: readonly (keyof typeof PACKAGES)[]): void {
  const missing = programs.filter(program => spawnSync(program, ['--version']).error !== undefined)
  if (missing.length === 0) return
  const list = missing.map(program => `${program} (${PACKAGES[program]})`).join(', ')
  throw new Error(`these tests need programs that are not installed here: ${list}`)
}
