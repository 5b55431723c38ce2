import { resource } from '../declare/resource.ts'
import { link, oneOf, own } from '../declare/table.ts'

const OBJECTS = ['deal', 'company']
const RELATED = ['company', 'contact']

const links = link('crm_record_links', {
  about:
    'Associations of CRM records: deal–company, deal–contact and company–contact. Each pair is stored once, in that direction.',
  key: ['object', 'record_id', 'related_object', 'related_id'],
  columns: {
    object: own('text', `${oneOf(OBJECTS)}.`, { values: OBJECTS, example: 'deal' }),
    record_id: own('text', 'Record.', {
      hasIds: true,
      refersTo: ['crm_records.id'],
      example: 'c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d',
    }),
    related_object: own('text', `${oneOf(RELATED)}.`, {
      values: RELATED,
      apiField: 'object',
      example: 'company',
    }),
    related_id: own('text', 'Related record.', {
      hasIds: true,
      refersTo: ['crm_records.id'],
      apiField: 'id',
      example: 'd3b2f7c5-1e9f-4068-8c4b-6f802b3c4d5e',
    }),
  },
  indices: { by_related: { on: ['related_object', 'related_id'] } },
})

export const crmRecordLinksResource = resource({
  name: 'crm_record_links',
  about: 'Associations of deals, companies and contacts',
  area: 'crm',
  parents: ['crm_records'],
  readAgainWith: 'crm_records',
  tables: [links],
  feeds: {
    read: {
      mode: 'item',
      read: { path: '/v2/objects/{scope}/records', paging: 'v2-cursor', scopeParameter: 'related_id' },
      stores: 'links',
      table: 'crm_record_links',
      everyRound: true,
      boundBySince: false,
      associations: {
        of: 'crm_records.list',
        kinds: [
          ['deal', 'company'],
          ['deal', 'contact'],
          ['company', 'contact'],
        ],
      },
      expected: { 404: 'unavailable' },
    },
  },
  status: { table: 'crm_record_links' },
  example: { read: { id: 'd3b2f7c5-1e9f-4068-8c4b-6f802b3c4d5e', object: 'company' } },
})
