import { readFileSync } from 'node:fs'

/** The folder of the units, their README and their other files. */
export const FOLDER = new URL('../../systemd/', import.meta.url).pathname

/** The settings of one unit file, whatever section they are in. */
export interface UnitFile {
  path: string
  /** All values of a setting, in the order of the file; a list in one line is one value. */
  all(setting: string): string[]
  /** The value of a setting that occurs once. */
  one(setting: string): string
}

export function readUnit(name: string): UnitFile {
  const path = `${FOLDER}${name}`
  const lines = readFileSync(path, 'utf8').split('\n')
  const all = (setting: string) =>
    lines.filter(line => line.startsWith(`${setting}=`)).map(line => line.slice(setting.length + 1))
  return {
    path,
    all,
    one(setting) {
      const [value, ...others] = all(setting)
      if (value === undefined || others.length > 0)
        throw new Error(`${name}: expected one ${setting}=, found ${others.length + (value ? 1 : 0)}`)
      return value
    },
  }
}

/** A value as systemd would read it for the instance `acme`, with another folder in place of /var/lib. */
export const expand = (value: string, { state }: { state: string }): string =>
  value.replace(/%([%iS])/g, (_, specifier) => ({ '%': '%', i: 'acme', S: state })[String(specifier)] ?? '')
