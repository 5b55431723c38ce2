import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { placeFor, workspace } from '../cli/workspace.ts'
import { receiver } from '../hooks/receiver.ts'
import { ACCESS, BUCKET, fakeS3 } from '../publish/s3/fake-s3.ts'
import { createCertificate, serveTlsTo, startConnectProxy } from '../support/connect-proxy.ts'
import { until } from '../support/until.ts'
import { startDaemon } from './cli-daemon.ts'

const portOf = (url: string): number => Number(new URL(url).port)

test('a daemon behind a proxy publishes to a bucket and calls a webhook through it, and reads an API on this machine without it', async context => {
  const simulator = await workspace(context)
  const [bucket, hook] = [await fakeS3(), await receiver()]
  const certificate = createCertificate(['bucket.test', 'hooks.test'])
  const ports = new Map([
    ['bucket.test:443', await serveTlsTo(certificate, portOf(bucket.url))],
    ['hooks.test:443', await serveTlsTo(certificate, portOf(hook.url))],
  ])
  const proxy = await startConnectProxy({ to: target => ports.get(target) ?? 1, login: 'me:hush' })
  const settings = {
    HTTPS_PROXY: proxy.url.replace('//', '//me:hush@'),
    HTTP_PROXY: 'http://127.0.0.1:1',
    NODE_EXTRA_CA_CERTS: certificate.file,
    PARLEY_HOOKS_ON_PROBLEM: `https://hooks.test${new URL(hook.url).pathname}`,
    PARLEY_PUBLISH_TARGET: `s3://${BUCKET}/lake`,
    PARLEY_PUBLISH_S3_ENDPOINT: 'https://bucket.test',
    PARLEY_PUBLISH_S3_REGION: ACCESS.region,
    PARLEY_PUBLISH_S3_ACCESS_KEY_ID: ACCESS.id,
    PARLEY_PUBLISH_S3_SECRET_ACCESS_KEY: ACCESS.secret,
  }
  const place = placeFor(simulator)
  const daemon = startDaemon(context, place, settings)
  const done = 'lake/publications/metadata/v1.metadata.json'
  expect(await until(bucket.keys, keys => keys.includes(done))).toContain(done)
  daemon.signal('SIGTERM')
  expect((await daemon.ended).status).toBe(EXIT_STATUS.done)

  const refused = startDaemon(context, place, { ...settings, PARLEY_API_KEY: 'another-key' })
  expect((await refused.ended).status).toBe(EXIT_STATUS.refused)
  expect(hook.calls.map(({ url, payload }) => [url, payload.id])).toEqual([
    [new URL(hook.url).pathname, 'daemon:ended'],
  ])
  expect(new Set(proxy.asked.map(({ target }) => target))).toEqual(new Set(ports.keys()))
  expect(JSON.stringify([...daemon.lines(), ...refused.lines()])).not.toContain('hush')
})
