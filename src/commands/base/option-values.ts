import { InvalidArgumentError } from 'commander'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { suggestion } from '../../base/nearest-name.ts'
import type { SettingKind } from '../../config/kinds.ts'

/** Parses the value of an option as that of a setting of this kind. */
export const parsedAs =
  <T>(kind: SettingKind<T>) =>
  (text: string): T => {
    const value = kind.read(kind.fromText(text), { cwd: '' })
    if (value === undefined) throw new InvalidArgumentError(`Expected ${kind.allowed()}.`)
    return value
  }

/** The names in the value of an option, which commas separate. */
export const namesIn = (text: string): string[] =>
  text
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '')

/** Parses the value of an option that names tables. */
export function parseTableNames(text: string): readonly string[] {
  const names = namesIn(text)
  if (names.length === 0) throw new InvalidArgumentError('Expected table names, separated by commas.')
  return names
}

/** @throws StopError (exit status 64) for an unknown name; the hint suggests the nearest name */
export function parseResourceName<Name extends string>(name: string, names: readonly Name[]): Name {
  const found = names.find(known => known === name)
  if (found !== undefined) return found
  throw new StopError(`Unknown resource ${JSON.stringify(name)}`, {
    code: 'unknown-resource',
    hint: `${name === 'all' ? 'Run the command once for each resource. ' : suggestion(name, names)}The resources are ${names.join(', ')}.`,
    exitStatus: EXIT_STATUS.usage,
  })
}
