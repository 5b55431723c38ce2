import { EXIT_STATUS, StopError } from '../errors.ts'
import { suggestion } from '../nearest-name.ts'
import { declaredTables, type ExportTable } from './tables.ts'

/** Tables as people name them: by their name or by that of their folder. Pure. */

/** The names of the tables that every warehouse has. */
export const tableNames = (): readonly string[] => declaredTables().map(({ name }) => name)

/** @throws StopError 64 for a name that no table has */
export function chosenTables(
  all: readonly ExportTable[],
  names: readonly string[] | undefined,
): readonly ExportTable[] {
  if (!names) return all
  const chosen = names.map(name => tableNamed(name, all) ?? refuse(name, all))
  return all.filter(table => chosen.includes(table))
}

/** As `chosenTables`, but a table of a CRM object may be missing: it exists once a record of the object was read. */
export function chosenOrComing(
  all: readonly ExportTable[],
  names: readonly string[] | undefined,
): readonly ExportTable[] {
  const isComing = (name: string) => name.startsWith('crm_') && tableNamed(name, all) === undefined
  return chosenTables(
    all,
    names?.filter(name => !isComing(name)),
  )
}

/** Accepts the folder's name too, since names of CRM objects may have commas or characters that are hard to type. */
function tableNamed(name: string, all: readonly ExportTable[]): ExportTable | undefined {
  const plain = name.toLowerCase()
  return all.find(table => [table.name, table.folder].some(one => one.toLowerCase() === plain))
}

function refuse(name: string, all: readonly ExportTable[]): never {
  const known = all.map(({ folder }) => folder)
  throw new StopError(`Unknown table ${JSON.stringify(name)}`, {
    code: 'unknown-table',
    hint: `${suggestion(name, known)}The tables are ${known.join(', ')}.`,
    exitStatus: EXIT_STATUS.usage,
  })
}
