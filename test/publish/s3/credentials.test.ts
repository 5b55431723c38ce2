import { writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { EXIT_STATUS } from '../../../src/base/errors.ts'
import { virtualClock } from '../../api/virtual-clock.ts'
import { newFolder } from '../../store/temporary-store.ts'
import { startConnectProxy } from '../../support/connect-proxy.ts'
import { until } from '../../support/until.ts'
import { ACCESS, fakeS3 } from './fake-s3.ts'
import { bucketOf } from './publishing.ts'
import type { FakeAccess } from './signature.ts'

/** Without settings, the client of AWS looks here. */
function environment(variables: Readonly<Record<string, string>>): void {
  onTestFinished(() => void vi.unstubAllEnvs())
  const folder = newFolder()
  const none = {
    AWS_CONFIG_FILE: join(folder, 'config'),
    AWS_SHARED_CREDENTIALS_FILE: join(folder, 'keys'),
    AWS_EC2_METADATA_DISABLED: 'true',
  }
  for (const [name, value] of Object.entries({ ...none, ...variables })) vi.stubEnv(name, value)
}

/** The address of a server that answers everything with this text. */
const answering = (text: string): Promise<string> => serving((_, response) => void response.end(text))

async function serving(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  return `http://127.0.0.1:${address !== null && typeof address === 'object' ? address.port : 0}`
}

const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString()

async function containerRole({ id, secret, token }: FakeAccess): Promise<string> {
  const answer = { AccessKeyId: id, SecretAccessKey: secret, Token: token, Expiration: inAnHour() }
  return `${await answering(JSON.stringify(answer))}/role`
}

const tokenService = ({ id, secret, token }: FakeAccess): Promise<string> =>
  answering(`<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
    <AssumeRoleWithWebIdentityResult><Credentials>
      <AccessKeyId>${id}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey>
      <SessionToken>${token}</SessionToken><Expiration>${inAnHour()}</Expiration>
    </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)

/** For a role that a token stands for, as in a pod of Kubernetes. */
function webIdentity(): Record<string, string> {
  const file = join(newFolder(), 'token')
  writeFileSync(file, 'the token')
  return {
    AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/publisher',
    AWS_WEB_IDENTITY_TOKEN_FILE: file,
    AWS_MAX_ATTEMPTS: '1',
  }
}

function profileFile(lines: readonly string[]): string {
  const file = join(newFolder(), 'credentials')
  writeFileSync(file, lines.join('\n'))
  return file
}

const TEMPORARY: FakeAccess = { ...ACCESS, token: 'T0KEN' }

test.each<[source: string, access: FakeAccess, variables: () => Promise<Record<string, string>>]>([
  [
    'the environment',
    TEMPORARY,
    async () => ({
      AWS_ACCESS_KEY_ID: ACCESS.id,
      AWS_SECRET_ACCESS_KEY: ACCESS.secret,
      AWS_SESSION_TOKEN: 'T0KEN',
    }),
  ],
  [
    'a profile',
    ACCESS,
    async () => ({
      AWS_PROFILE: 'acme',
      AWS_SHARED_CREDENTIALS_FILE: profileFile([
        '[acme]',
        `aws_access_key_id = ${ACCESS.id}`,
        `aws_secret_access_key = ${ACCESS.secret}`,
      ]),
    }),
  ],
  [
    'the role of a container',
    TEMPORARY,
    async () => ({ AWS_CONTAINER_CREDENTIALS_FULL_URI: await containerRole(TEMPORARY) }),
  ],
  [
    'a web identity',
    TEMPORARY,
    async () => ({ ...webIdentity(), AWS_ENDPOINT_URL_STS: await tokenService(TEMPORARY) }),
  ],
])('without settings, the credentials are those of %s', async (_, access, variables) => {
  const fake = await fakeS3({ access })
  environment(await variables())
  const storage = await bucketOf(fake, { credentials: undefined })
  await storage.write('t/one', Buffer.from('1'))
  expect(fake.keys()).toContain('lake/t/one')
})

test('credentials of the settings count before those of the environment', async () => {
  const fake = await fakeS3()
  environment({ AWS_ACCESS_KEY_ID: 'ANOTHER', AWS_SECRET_ACCESS_KEY: 'another' })
  await bucketOf(fake)
  expect(fake.keys()).toEqual(['lake/.parley-publish'])
})

test('without any credentials no request is sent, and the error names the settings', async () => {
  const fake = await fakeS3()
  environment({})
  await expect(bucketOf(fake, { credentials: undefined })).rejects.toMatchObject({
    exitStatus: EXIT_STATUS.settings,
    message: expect.stringContaining('publish.s3_access_key_id and publish.s3_secret_access_key are not set'),
  })
  expect(fake.calls).toEqual([])
})

test('a proxy that does not connect to the service for credentials is the reason, and no credentials are said to be missing', async () => {
  const fake = await fakeS3()
  const proxy = await startConnectProxy({ to: 1, answers: 403 })
  const sts = `sts.${ACCESS.region}.amazonaws.com`
  environment(webIdentity())
  const proxies = { https: { url: proxy.url, source: 'HTTPS_PROXY' } }
  await expect(bucketOf(fake, { credentials: undefined, proxies })).rejects.toMatchObject({
    exitStatus: EXIT_STATUS.databaseUnavailable,
    message: expect.stringContaining(
      `https://${sts} cannot be reached: the proxy ${proxy.url} (HTTPS_PROXY) refuses`,
    ),
  })
  expect(new Set(proxy.asked.map(({ target }) => target))).toEqual(new Set([`${sts}:443`]))
})

describe('while a service for credentials does not answer', () => {
  async function openAtSilentService() {
    const fake = await fakeS3()
    let asked = 0
    const service = await serving(() => {
      asked += 1
    })
    environment({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `${service}/role` })
    const [clock, stop] = [virtualClock(Date.now()), new AbortController()]
    const opened = bucketOf(fake, { credentials: undefined, clock, signal: stop.signal })
    opened.catch(() => undefined)
    await until(
      () => asked,
      count => count > 0,
    )
    return { fake, opened, clock, stop }
  }

  test('the signal ends the wait with its reason', async () => {
    const { opened, stop } = await openAtSilentService()
    stop.abort(new Error('stopped by a person'))
    await expect(opened).rejects.toThrow('stopped by a person')
  })

  test('the wait ends after a minute with an error that names what may give credentials', async () => {
    const { fake, opened, clock } = await openAtSilentService()
    await clock.advance(60_000)
    await expect(opened).rejects.toMatchObject({
      code: 'publish-credentials-late',
      exitStatus: EXIT_STATUS.databaseUnavailable,
      message: 'Nothing gave credentials for s3://lake-of-acme/lake within 60 s',
      hint: expect.stringContaining('AWS_CONTAINER_CREDENTIALS_FULL_URI'),
    })
    expect(fake.calls).toEqual([])
  })
})

test('an address of the environment is used, and refused if it is neither encrypted nor on this machine', async () => {
  const fake = await fakeS3()
  environment({ AWS_ENDPOINT_URL_S3: fake.url })
  await bucketOf(fake, { endpoint: undefined, pathStyle: true })
  expect(fake.keys()).toEqual(['lake/.parley-publish'])
  vi.stubEnv('AWS_ENDPOINT_URL_S3', 'http://minio.example:9000')
  await expect(bucketOf(fake, { endpoint: undefined, pathStyle: true })).rejects.toMatchObject({
    exitStatus: EXIT_STATUS.settings,
    message: 'http://minio.example:9000 is plain http, which is accepted for this machine only',
  })
})
