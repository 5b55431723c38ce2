import type { ChangesRead } from '../../catalog/resource.ts'
import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'

/** A field whose value is the key of another row: a record of `targetObject`, or a row of `targetResource`. */
export interface RelationField {
  name: string
  targetObject: string | null
  targetResource: string | null
}

/** The relation fields of an object. */
export type RelationsOf = (declared: ChangesRead['relations'], object: string) => RelationField[]

export function createRelations(prepare: Prepare): RelationsOf {
  return ({ table, where, name, targetObject, targetResource, ...columns }, object) => {
    const fields = prepare<RelationField>(
      `SELECT ${quote(name)} AS name, ${quote(targetObject)} AS targetObject, ${quote(targetResource)} AS targetResource
       FROM ${quote(table)} WHERE ${quote(columns.object)} = ? AND ${where}`,
    )
    return fields.all(object)
  }
}
