import { resource } from '../declare/resource.ts'
import { entity, own } from '../declare/table.ts'

const integrations = entity('integrations', {
  about:
    'Integrations of the workspace. The API does not state their shape, so the whole document is stored.',
  key: ['id'],
  columns: {
    id: own('integer', 'Always 1.', { example: '1' }),
    document: own('json', 'The document as sent by the API.', {
      content: true,
      nullMeans: 'The API sent null.',
      example: '{"crm":{"provider":"salesforce"}}',
    }),
  },
})

export const integrationsResource = resource({
  name: 'integrations',
  about: 'CRM, meeting and chat integrations of the workspace',
  area: 'service',
  parents: [],
  tables: [integrations],
  feeds: {
    read: {
      mode: 'singleton',
      read: { path: '/v1/settings/integrations', placement: 'either' },
      table: 'integrations',
      stores: 'document',
      expected: { 403: 'unavailable', 404: 'unavailable' },
    },
  },
  status: { table: 'integrations' },
  example: { read: { crm: { provider: 'salesforce', connected: true } } },
})
