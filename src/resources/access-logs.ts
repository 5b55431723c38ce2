import { resource } from '../declare/resource.ts'
import { entity, integer, own, text, timestamp } from '../declare/table.ts'

const accessLogs = entity('access_logs', {
  about:
    "The workspace's own API requests. Entries that the API no longer lists are kept. A value that the API could not capture is NULL.",
  nullMeans: 'The API could not capture it, or it is an older entry.',
  key: ['id'],
  columns: {
    id: own('text', 'Set by parley: a digest of all fields and of a number that counts identical entries.', {
      example: '1f0a9c…',
    }),
    occurred_at: timestamp('When the request was made.'),
    operation: text('Display name of the operation.', { isEnumerated: true }),
    method: text('HTTP method.', { isEnumerated: true }),
    route: text('Path template, with parameter names.'),
    path: text('Path as requested.'),
    status_code: integer('HTTP status.'),
    duration_ms: integer('How long the request took.', { unit: 'milliseconds' }),
    response_size_bytes: integer('Size of the response.', { unit: 'bytes' }),
    api_key_suffix: text('Last characters of the API key.'),
    completion: text('How the request ended. The API does not state its values.', { isEnumerated: true }),
  },
  indices: { by_time: { on: ['occurred_at DESC', '_deleted_at'] } },
})

export const accessLogsResource = resource({
  name: 'access_logs',
  about: 'The access log of the API',
  area: 'service',
  parents: [],
  tables: [accessLogs],
  feeds: {
    log: {
      mode: 'periodic',
      list: { path: '/v1/public-api-access-logs', paging: 'v1-cursor' },
      table: 'access_logs',
      time: 'occurred_at',
      from: 'from',
      expected: { 403: 'unavailable', 404: 'unavailable' },
    },
  },
  status: { table: 'access_logs', newest: 'occurred_at' },
  example: {
    log: {
      occurred_at: '2026-03-04T05:06:07.123Z',
      operation: 'List messages',
      method: 'GET',
      route: '/v2/messages',
      path: '/v2/messages',
      status_code: 200,
      duration_ms: 42,
      response_size_bytes: 18034,
      api_key_suffix: 'x9Qz',
      completion: 'COMPLETED',
    },
  },
})
