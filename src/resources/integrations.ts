import { entity, own, resource } from '../resource.ts'

const integrations = entity('integrations', {
  about: 'Workspace-level integrations. The API does not show their shape, so the document is kept whole.',
  key: ['id'],
  columns: {
    id: own('integer', 'Always 1.', { example: '1' }),
    document: own('json', 'As the API sent it.', {
      content: true,
      nullMeans: 'The API sent null.',
      example: '{"crm":{"provider":"salesforce"}}',
    }),
  },
})

export const integrationsResource = resource({
  name: 'integrations',
  about: 'CRM, meeting and chat integrations of the workspace',
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
