import { resource } from '../declare/resource.ts'
import { entity, id, text, timestamp } from '../declare/table.ts'

const collections = entity('collections', {
  about: 'Published, active collections of meetings.',
  key: ['id'],
  changedAt: 'updated_at',
  columns: {
    id: id('Collection id.'),
    name: text('Name of the collection.', { content: true }),
    description: text('Description of the collection.', { content: true }),
    visibility: text('Visibility. The API does not state its values.', { isEnumerated: true }),
    created_at: timestamp('When it was created.'),
    updated_at: timestamp('When it was last changed.'),
  },
})

export const collectionsResource = resource({
  name: 'collections',
  about: 'Collections of meetings',
  area: 'meetings',
  parents: [],
  tables: [collections],
  feeds: {
    list: {
      mode: 'snapshot',
      list: { path: '/v1/collections', paging: 'v1-cursor' },
      table: 'collections',
      lists: 'rows',
      keyFields: ['id'],
      evidence: {
        by: 'single',
        read: { path: '/v1/collections/{key}', placement: 'either', identity: 'id' },
      },
    },
  },
  status: { table: 'collections', newest: 'created_at' },
  example: {
    list: {
      id: 'col_1',
      name: 'Onboarding',
      description: 'Calls worth listening to',
      visibility: 'WORKSPACE',
      created_at: '2026-01-05T09:00:00Z',
      updated_at: '2026-02-01T10:30:00.250Z',
    },
  },
})
