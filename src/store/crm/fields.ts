import type { Prepare } from '../database/sqlite-types.ts'
import type { CrmField } from './columns.ts'

export interface PublishedField extends CrmField {
  /** The published column, `crm_fields.column_name`. */
  column: string | null
}

/** Reads the fields of an object in the order of the metadata. */
export type CrmFieldReader = (object: string) => PublishedField[]

interface FieldRow extends Omit<PublishedField, 'isActive' | 'isRelation' | 'target'> {
  isActive: number
  isRelation: number | null
  targetObject: string | null
  targetResource: string | null
}

const IS_RELATION = "relation_type = 'MANY_TO_ONE'"

export function createCrmFieldReader(prepare: Prepare, { relationsOnly = false } = {}): CrmFieldReader {
  const read = prepare<FieldRow>(
    `SELECT name, label, type, is_active IS NOT 0 AS isActive, ${IS_RELATION} AS isRelation,
       relation_target_object AS targetObject, relation_target_resource AS targetResource, column_name AS "column"
     FROM crm_fields WHERE object = ?${relationsOnly ? ` AND ${IS_RELATION}` : ''} ORDER BY position, name`,
  )
  return object =>
    read.all(object).map(({ targetObject, targetResource, ...field }) => ({
      ...field,
      isActive: field.isActive === 1,
      isRelation: field.isRelation === 1,
      ...(field.isRelation === 1 ? { target: { object: targetObject, resource: targetResource } } : {}),
    }))
}
