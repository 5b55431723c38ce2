import { InvalidArgumentError } from 'commander'

/** Parses the value of an option that names tables. */
export function parseTableNames(text: string): readonly string[] {
  const names = text
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '')
  if (names.length === 0) throw new InvalidArgumentError('Expected table names, separated by commas.')
  return names
}
