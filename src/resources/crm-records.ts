import { resource } from '../declare/resource.ts'
import { entity, id, json, link, own, requestKey, text, timestamp } from '../declare/table.ts'

const records = entity('crm_records', {
  about: 'Deals, companies, contacts and all other CRM records that are published to the workspace.',
  key: ['object', 'id'],
  cascades: [
    { table: 'crm_record_links', on: { object: 'object', record_id: 'id' } },
    { table: 'crm_record_links', on: { related_object: 'object', related_id: 'id' } },
  ],
  storage: 'rowid',
  changedAt: 'updated_at',
  columns: {
    object: requestKey('Object (`crm_objects.name`).', { from: 'object', refersTo: ['crm_objects.name'] }),
    id: id('Record id.'),
    visibility: text('`workspace` for everything that the API lists.', { isEnumerated: true }),
    fields: json('Field values by field name. Numbers keep every digit that the API sent.', {
      content: true,
    }),
    created_at: timestamp('When it was created.'),
    updated_at: timestamp('When it was last changed.'),
    created_by_kind: text('`member`, or another kind.', { isEnumerated: true, from: 'created_by.kind' }),
    created_by_name: text('Who created it.', { from: 'created_by.name', content: true }),
    updated_by_kind: text('`member`, or another kind.', { isEnumerated: true, from: 'updated_by.kind' }),
    updated_by_name: text('Who last changed it.', { from: 'updated_by.name', content: true }),
  },
  indices: { by_id: { on: ['id'] }, by_update: { on: ['updated_at'] } },
})

const changes = link('crm_record_changes', {
  about: 'Changes of field values that parley observed between two reads of a record. Rows are only added.',
  key: ['object', 'record_id', 'field', 'observed_at'],
  livesWith: { table: 'crm_records', on: { object: 'object', record_id: 'id' } },
  columns: {
    object: own('text', 'Object of the record (`crm_records.object`).', { example: 'deal' }),
    record_id: own('text', 'Record (`crm_records.id`).', {
      hasIds: true,
      refersTo: ['crm_records.id'],
      example: 'c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d',
    }),
    field: own('text', 'Name of the field, a key of `crm_records.fields`.', {
      apiField: 'fields',
      example: 'stage_id',
    }),
    observed_at: own('timestamp', 'When parley read the new value.', { example: '2026-03-04T05:06:07.123Z' }),
    old_value: own('json', 'Previous value, as JSON. A null that the API sent is the text `null`.', {
      content: true,
      nullMeans: 'The field was absent.',
      apiField: 'fields.*',
      example: '1000000',
    }),
    new_value: own('json', 'New value, as JSON. A null that the API sent is the text `null`.', {
      content: true,
      nullMeans: 'The field is absent.',
      apiField: 'fields.*',
      example: '1200000',
    }),
  },
})

export const crmRecordsResource = resource({
  name: 'crm_records',
  about: 'CRM records of every object, and their changes',
  area: 'crm',
  parents: ['crm_objects'],
  tables: [records, changes],
  feeds: {
    list: {
      mode: 'snapshot',
      list: { path: '/v2/objects/{scope}/records', paging: 'v2-cursor' },
      table: 'crm_records',
      lists: 'rows',
      keyFields: ['id'],
      // Activities and deals refer to companies and contacts, but the API may leave both out of the object list.
      scope: { table: 'crm_objects', column: 'name', always: ['company', 'contact'] },
      evidence: {
        by: 'ids',
        path: '/v2/objects/{scope}/records',
        read: { path: '/v2/objects/{scope}/records/{key}', placement: 'either', identity: 'id' },
      },
      changes: { updated: 'updated_at', values: 'fields' },
      followUps: [
        {
          on: ['inserted', 'changed', 'revived'],
          records: { object: 'object', key: 'id' },
          at: 'updated_at',
          feed: 'crm_record_links.read',
        },
      ],
      expected: { 404: 'unavailable' },
    },
  },
  status: { table: 'crm_records', newest: 'updated_at' },
  example: {
    list: {
      id: 'c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d',
      object: 'deal',
      visibility: 'workspace',
      fields: { name: 'Acme renewal', amount: 1200000, stage_id: 'f5d4b9e7-30b1-4280-8e6d-81a24d5e6f70' },
      created_at: '2026-01-05T09:00:00Z',
      updated_at: '2026-02-01T10:30:00Z',
      created_by: { kind: 'member', name: 'Aiko Tanaka' },
      updated_by: { kind: 'member', name: 'Aiko Tanaka' },
    },
  },
})
