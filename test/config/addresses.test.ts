import { expect, test } from 'vitest'
import { loadSettings } from '../../src/config/load-settings.ts'
import { environmentName, SETTING_LIST, type SettingKey } from '../../src/config/settings.ts'

const API = {
  PARLEY_BASE_URL: 'https://api.example.com',
  PARLEY_API_KEY: 'the-key',
  PARLEY_WORKSPACE_ID: 'acme',
}

/** Settings to which nothing is sent, although they accept text that looks like an address. */
const NO_ADDRESSES: readonly SettingKey[] = [
  // Paths.
  'database.path',
  'snapshot.folder',
  // Text of others, as they gave it.
  'api.key',
  'api.workspace_id',
  'http.token',
  'http.catalogue_token',
  'http.nudge_secret',
  'publish.s3_secret_access_key',
  'publish.s3_session_token',
  // Only compared with answers.
  'reporting.no_answers',
  // Only written into the published metadata, for readers.
  'publish.location',
]

/** What becomes of an address as the value of a setting. */
function fate(key: SettingKey, address: string): 'refused' | 'warned' | 'accepted' {
  const names = { resourceNames: ['teams'], tableNames: ['teams'] }
  const env = { ...API, [environmentName(key)]: address }
  try {
    const { warnings } = loadSettings({ flags: {}, env, cwd: '/nonexistent', requireApi: true, ...names })
    return warnings.some(text => text.startsWith(`${key} is http://`) && text.includes('unencrypted'))
      ? 'warned'
      : 'accepted'
  } catch {
    return 'refused'
  }
}

/** Names of fields, stages and pipelines in the CRM may be any text. */
const isOfCrm = (key: SettingKey) => key.startsWith('crm.')

test.each(SETTING_LIST.map(([key]) => key).filter(key => !NO_ADDRESSES.includes(key) && !isOfCrm(key)))(
  'no credential goes to an address of %s over the network unencrypted without a refusal or a warning',
  key => {
    expect(fate(key, 'http://name:password@192.0.2.1:9')).not.toBe('accepted')
    if (key !== 'api.proxy') expect(fate(key, 'http://192.0.2.1:9')).not.toBe('accepted')
  },
)

test.each<[key: SettingKey, address: string, fate: string]>([
  ['api.base_url', 'http://192.0.2.1:9', 'warned'],
  ['api.base_url', 'http://127.0.0.1:9', 'accepted'],
  ['api.base_url', 'https://192.0.2.1:9', 'accepted'],
  ['api.proxy', 'http://name:password@192.0.2.1:9', 'warned'],
  ['api.proxy', 'http://192.0.2.1:9', 'accepted'],
  ['api.proxy', 'https://name:password@192.0.2.1:9', 'accepted'],
  ['publish.s3_endpoint', 'http://192.0.2.1:9', 'refused'],
  ['publish.s3_endpoint', 'http://[::1]:9', 'accepted'],
  ['hooks.on_problem', 'http://192.0.2.1:9/token', 'refused'],
  ['hooks.on_recovered', 'https://192.0.2.1:9/token', 'accepted'],
])('%s at %s is %s', (key, address, expected) => {
  expect(fate(key, address)).toBe(expected)
})
