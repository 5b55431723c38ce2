import { resource } from '../declare/resource.ts'
import { boolean, child, entity, json, own, parent, position, text } from '../declare/table.ts'

const fields = child('crm_fields', {
  about: 'The fields of each CRM object.',
  list: 'fields',
  key: ['object', 'name'],
  columns: {
    object: parent('name', 'text', 'Object (`crm_objects.name`).'),
    name: text("Field name: a key of `crm_records.fields`, chosen by the CRM's administrators."),
    position: position(),
    label: text('Display name.', { content: true }),
    type: text('Type. The API does not state its values.', { isEnumerated: true }),
    is_nullable: boolean('1 when a record may have no value.'),
    is_unique: boolean('1 when no two records may have the same value.'),
    is_custom: boolean('1 for a field that the workspace added, 0 for a standard one.'),
    is_active: boolean('1 while in use.'),
    options: json('Choices and other settings, free-form.', { content: true, example: '["New","Renewal"]' }),
    relation_type: text('`MANY_TO_ONE` for a field that points at another record.', {
      isEnumerated: true,
      from: 'relation.type',
      nullMeans: 'The field is not a relation.',
    }),
    relation_target_object: text('CRM object that the field points at.', {
      from: 'relation.target_object',
      nullMeans: 'The field does not point at a CRM object.',
      refersTo: ['crm_objects.name'],
      example: 'stage',
    }),
    relation_target_resource: text('Resource of the API that the field points at, such as `members`.', {
      isEnumerated: true,
      from: 'relation.target_resource',
      nullMeans: 'The field does not point at another resource.',
    }),
    column_name: own('text', 'Column of the field in the typed table (`crm_objects.table_name`).', {
      nullMeans: 'The field has no column, or none yet. Its values are in `crm_records.fields`.',
      example: 'owner_id',
    }),
  },
})

const objects = entity('crm_objects', {
  about: 'The CRM objects of the workspace, and their typed tables.',
  key: ['name'],
  cascades: [{ table: 'crm_records', on: { object: 'name' } }],
  columns: {
    name: text('API name, such as `deal`.'),
    name_plural: text('API name in the plural.'),
    label: text('Display name.', { content: true }),
    label_plural: text('Display name in the plural.', { content: true }),
    is_custom: boolean('1 for an object that the workspace added, 0 for a standard one.'),
    is_active: boolean('1 while in use.'),
    table_name: own('text', "Typed table of the object's records, such as `crm_deal`.", {
      nullMeans: 'The object has no typed table yet, or `crm.tables` is off.',
      example: 'crm_deal',
    }),
  },
  children: [fields],
})

export const crmObjectsResource = resource({
  name: 'crm_objects',
  about: 'CRM objects and their fields',
  area: 'crm',
  parents: [],
  tables: [objects],
  feeds: {
    list: {
      mode: 'snapshot',
      list: { path: '/v2/objects', paging: 'any' },
      table: 'crm_objects',
      lists: 'keys',
      keyFields: ['name'],
      // Activities and deals refer to companies and contacts, but the API may leave both out of this list.
      always: ['company', 'contact'],
      evidence: { by: 'detail' },
    },
    detail: {
      mode: 'item',
      read: { path: '/v2/objects/{key}', placement: 'either', identity: 'name' },
      stores: 'row',
      table: 'crm_objects',
      everyRound: true,
      boundBySince: false,
      expected: { 404: 'absent' },
    },
  },
  status: { table: 'crm_objects' },
  example: {
    list: { name: 'deal' },
    detail: {
      name: 'deal',
      name_plural: 'deals',
      label: 'Deal',
      label_plural: 'Deals',
      is_custom: false,
      is_active: true,
      fields: [
        {
          name: 'owner_id',
          label: 'Owner',
          type: 'relation',
          is_nullable: true,
          is_unique: false,
          is_custom: false,
          is_active: true,
          options: null,
          relation: { type: 'MANY_TO_ONE', target_object: null, target_resource: 'members' },
        },
      ],
    },
  },
})
