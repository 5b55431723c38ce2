import { EXIT_STATUS, StopError } from '../base/errors.ts'
import { suggestion } from '../base/nearest-name.ts'
import { declaredTables, type ExportTable } from './export-tables.ts'

/** Finds tables by the names that people use: the name of a table or of its folder. Pure. */

/** The names of the tables that every warehouse has. */
export const declaredTableNames = (): readonly string[] => declaredTables().map(({ name }) => name)

type NamedTable = Pick<ExportTable, 'name' | 'folder'>

/**
 * @param isComing whether a name is accepted although no table has it yet
 * @throws StopError (exit status 64) for any other name that no table has
 */
export function chosenTables<T extends NamedTable>(
  all: readonly T[],
  names: readonly string[] | undefined,
  isComing: (name: string) => boolean = () => false,
): readonly T[] {
  if (!names) return all
  const chosen = names.flatMap(name => {
    const table = chosenTable(name, all)
    if (table) return table
    return isComing(name) ? [] : refuse(name, all)
  })
  return all.filter(table => chosen.includes(table))
}

/** Accepts the folder's name too, since names of CRM objects may have commas or characters that are hard to type. */
export function chosenTable<T extends NamedTable>(name: string, all: readonly T[]): T | undefined {
  return all.find(table => [table.name, table.folder].some(one => isSameName(one, name)))
}

export const isSameName = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()

function refuse(name: string, all: readonly NamedTable[]): never {
  const known = all.map(({ folder }) => folder)
  throw new StopError(`Unknown table ${JSON.stringify(name)}`, {
    code: 'unknown-table',
    hint: `${suggestion(name, known)}The tables are ${known.join(', ')}.`,
    exitStatus: EXIT_STATUS.usage,
  })
}
