import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { EXIT_STATUS } from '../../../src/base/errors.ts'
import { openTargetReader } from '../../../src/publish/storage/open.ts'
import { parley } from '../../cli/parley.ts'
import { PUBLISH_DEFAULTS } from '../../daemon/publish-settings.ts'
import { temporaryStore } from '../../store/temporary-store.ts'
import { createCertificate, serveTlsTo, startConnectProxy } from '../../support/connect-proxy.ts'
import { ACCESS, BUCKET, fakeS3 } from './fake-s3.ts'
import { readerOf } from './publishing.ts'

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
    hint: expect.stringMatching(/^Correct the user name and password of the proxy in api\.proxy\. /),
  })
  expect(new Set(proxy.asked.map(({ target }) => target))).toEqual(new Set(['bucket.example.test:443']))
})

test('a bucket that is named in the host of an address of this machine is never asked for at a proxy', async () => {
  const proxy = await startConnectProxy({ to: 1, answers: 403 })
  const rule = { url: proxy.url, source: 'HTTP_PROXY' }
  const reader = readerOf({ url: 'http://localhost:1' }, { pathStyle: false, proxies: { http: rule } })
  await expect(reader.holds()).rejects.toMatchObject({
    message: expect.stringContaining('cannot be reached'),
  })
  expect(proxy.asked).toEqual([])
})

describe('a publication to a bucket that is reached only over TLS', () => {
  /** An address of this machine that is not loopback for parley, so no name has to be looked up. */
  const HERE = '0.0.0.0'

  async function bucketBehindProxy() {
    const fake = await fakeS3()
    const certificate = createCertificate(['bucket.test', HERE])
    const port = await serveTlsTo(certificate, Number(new URL(fake.url).port))
    const proxy = await startConnectProxy({ to: port, login: 'me:hush' })
    const store = temporaryStore()
    store.put('members', [{ id: 'm', name: 'M' }], { now: '2026-01-01T00:00:00.000Z' })
    const run = (command: readonly string[], endpoint: string, env: Readonly<Record<string, string>>) =>
      parley([...command, `s3://${BUCKET}/lake`, '--database', store.path], {
        env: {
          PARLEY_PUBLISH_S3_ENDPOINT: endpoint,
          PARLEY_PUBLISH_S3_REGION: ACCESS.region,
          PARLEY_PUBLISH_S3_ACCESS_KEY_ID: ACCESS.id,
          PARLEY_PUBLISH_S3_SECRET_ACCESS_KEY: ACCESS.secret,
          NODE_EXTRA_CA_CERTS: certificate.file,
          ...env,
        },
      })
    return { fake, port, proxy, url: proxy.url.replace('//', '//me:hush@'), run }
  }

  const DONE = { status: EXIT_STATUS.done, stderr: '' }

  test.each<[source: string, env: (url: string) => Record<string, string>]>([
    ['HTTPS_PROXY', url => ({ HTTPS_PROXY: url, NO_PROXY: 'other.test' })],
    ['api.proxy', url => ({ PARLEY_API_PROXY: url, HTTPS_PROXY: 'http://127.0.0.1:1' })],
  ])('goes through the proxy of %s, is complete, and is verified there', async (_, env) => {
    const { fake, proxy, url, run } = await bucketBehindProxy()
    expect(await run(['publish', '--tables', 'members'], 'https://bucket.test', env(url))).toMatchObject(DONE)
    expect(fake.keys()).toContain('lake/publications/metadata/v1.metadata.json')
    const before = proxy.asked.length
    expect(await run(['publish', 'verify'], 'https://bucket.test', env(url))).toMatchObject(DONE)
    expect(proxy.asked.length).toBeGreaterThan(before)
    expect(new Set(proxy.asked.map(({ target, login }) => `${target} ${login}`))).toEqual(
      new Set(['bucket.test:443 me:hush']),
    )
  })

  test.each([
    ['directly when NO_PROXY has its address', HERE, false],
    ['through the proxy when NO_PROXY has another address', '0.0.0.1', true],
  ])('goes %s', async (_, except, isProxied) => {
    const { fake, port, proxy, url, run } = await bucketBehindProxy()
    const env = { HTTPS_PROXY: url, NO_PROXY: `localhost,${except}` }
    expect(await run(['publish', '--tables', 'members'], `https://${HERE}:${port}`, env)).toMatchObject(DONE)
    expect(fake.keys()).toContain('lake/publications/metadata/v1.metadata.json')
    expect(new Set(proxy.asked.map(({ target }) => target))).toEqual(
      new Set(isProxied ? [`${HERE}:${port}`] : []),
    )
  })
})
