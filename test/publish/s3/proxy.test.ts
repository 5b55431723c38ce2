import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { openTargetReader } from '../../../src/publish/storage/open.ts'

import { PUBLISH_DEFAULTS } from '../../daemon/publish-settings.ts'
import { startConnectProxy } from '../../support/connect-proxy.ts'

test('requests to a bucket go through the proxy, and a proxy that refuses is told apart from the bucket', async () => {
  const proxy = await startConnectProxy({ to: 1, login: 'me:right' })
  const rule = { url: proxy.url.replace('//', '//me:hush@'), source: 'api.proxy' }
  const settings = {
    database: { path: '/nonexistent', mode: 0o600 },
    proxies: { https: rule },
    publish: {
      ...PUBLISH_DEFAULTS,
      s3Endpoint: 'https://bucket.example.test',
      s3AccessKeyId: 'id',
      s3SecretAccessKey: 'secret',
    },
  }
  const { signal } = new AbortController()
  const work = { settings, location: undefined, clock: systemClock(), signal, random: () => 0 }
  const reader = await openTargetReader({ by: 's3', bucket: 'lake', prefix: '' }, work)
  const failure = await reader.holds().then(
    () => undefined,
    (error: unknown) => error,
  )
  reader.close()
  expect(failure).toMatchObject({
    message: expect.stringContaining(
      `the proxy ${proxy.url} (api.proxy) refuses the user name and password (HTTP 407)`,
    ),
  })
  expect(new Set(proxy.asked.map(({ target }) => target))).toEqual(new Set(['bucket.example.test:443']))
})
