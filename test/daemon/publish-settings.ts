import type { Settings } from '../../src/config/loaded-settings.ts'

/** `[publish]` without a target, as the defaults are. */
export const PUBLISH_DEFAULTS: Settings['publish'] = {
  target: undefined,
  every: { by: 'interval', ms: 300_000 },
  keep: 5,
  tables: undefined,
  location: undefined,
  s3Endpoint: undefined,
  s3Region: 'us-east-1',
  s3AccessKeyId: undefined,
  s3SecretAccessKey: undefined,
  s3SessionToken: undefined,
  s3PathStyle: undefined,
}
