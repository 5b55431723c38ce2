import { createHash } from 'node:crypto'
import { fstatSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { EXIT_STATUS, type StopError } from '../../../src/base/errors.ts'
import type { S3Options } from '../../../src/publish/storage/s3.ts'
import { virtualClock } from '../../api/virtual-clock.ts'
import { newFolder } from '../../store/temporary-store.ts'
import { createCertificate, serveHttps } from '../../support/connect-proxy.ts'
import { until } from '../../support/until.ts'
import {
  ACCESS,
  BUCKET,
  CONFLICT,
  FAILING,
  type FakeFault,
  type FakeS3Options,
  fakeS3,
  PRIVATE_TEXT,
  SLOW_DOWN,
} from './fake-s3.ts'
import { bucketOf, datedClock } from './publishing.ts'

const text = (bytes: Buffer | undefined) => bytes?.toString()

type Bucket = Awaited<ReturnType<typeof bucketOf>>

function write(storage: Bucket, path: string, content: string, bytes = content.length): void {
  const { file, end } = storage.beginFile(path)
  writeFileSync(file, content)
  end({ bytes, sha256: createHash('sha256').update(content).digest('hex') })
}

async function upload(storage: Bucket, path: string, content: string): Promise<void> {
  write(storage, path, content)
  await storage.uploaded()
}

test('an object that was written is read back, and one that was not is undefined', async () => {
  const fake = await fakeS3()
  const storage = await bucketOf(fake)
  await storage.write('a/one', Buffer.from('1'))
  await storage.replace('a/one', Buffer.from('2'))
  expect([text(await storage.read('a/one')), await storage.read('a/two')]).toEqual(['2', undefined])
  await storage.remove('a/one')
  await storage.remove('a/one')
  expect(fake.keys()).toEqual(['lake/.parley-publish'])
})

test.each(['lake', 'a b/c+d', 'ä/日本=&', "q'!()*", 'per%20cent', ''])(
  'keys with odd characters below the prefix %j are written, listed, read and removed',
  async prefix => {
    const fake = await fakeS3()
    const storage = await bucketOf(fake, { prefix })
    const paths = ['t/a b', 't/a+b', 't/%41', 't/ü&<>"', "t/!'()*~", 't/=?#', 't/日本', 't/a//b']
    for (const path of paths) await storage.write(path, Buffer.from(path))
    expect(fake.keys()).toEqual(
      [...paths, '.parley-publish'].map(path => (prefix === '' ? path : `${prefix}/${path}`)).sort(),
    )
    const listed = await storage.list('t')
    expect(listed.toSorted()).toEqual(paths.toSorted())
    for (const path of listed) expect(text(await storage.read(path))).toBe(path)
    for (const path of listed) await storage.remove(path)
    expect(await storage.list('t')).toEqual([])
  },
)

test('keys of a server that does not encode them in a listing are read as they are', async () => {
  const fake = await fakeS3({ plainKeys: true })
  const storage = await bucketOf(fake)
  const paths = ['t/%41', 't/a & <b>', 't/a+b']
  for (const path of paths) await storage.write(path, Buffer.from(path))
  expect(await storage.list('t')).toEqual(paths)
})

test('a listing of more than 1000 keys is complete, and has no keys of a folder whose name only begins alike', async () => {
  const fake = await fakeS3()
  const storage = await bucketOf(fake)
  const paths = Array.from({ length: 2500 }, (_, number) => `t/${String(number).padStart(5, '0')}`)
  for (const path of [...paths, 'table/other', 't'])
    fake.objects.set(`lake/${path}`, { bytes: Buffer.from(''), at: 0 })
  const before = fake.calls.length
  expect(await storage.list('t')).toEqual(paths)
  expect(fake.calls.length - before).toBe(3)
})

test('an object is written if absent only once', async () => {
  const fake = await fakeS3()
  const [one, other] = [await bucketOf(fake), await bucketOf(fake)]
  const written = await Promise.all([
    one.writeIfAbsent('v1', Buffer.from('one')),
    other.writeIfAbsent('v1', Buffer.from('other')),
  ])
  expect(written.toSorted()).toEqual([false, true])
  expect(text(await one.read('v1'))).toBe(written[0] ? 'one' : 'other')
})

test.each<[what: string, faults: FakeFault[]]>([
  ['an error of the server', [FAILING]],
  ['a request to slow down', [SLOW_DOWN, SLOW_DOWN]],
  ['a reset before it was stored', ['reset']],
  ['a lost answer', ['lost']],
  ['a lost answer and an error', ['lost', FAILING]],
  ['a conflict with an earlier try that is still being stored', ['lost', CONFLICT]],
  ['a conflict with a write that was not stored', [CONFLICT]],
  ['a 429', [{ status: 429 }]],
])(
  'after %s, a write if absent is repeated and does not take its own object for that of another process',
  async (_, faults) => {
    const fake = await fakeS3()
    const storage = await bucketOf(fake)
    const left = [...faults]
    fake.fault = ({ method }) => (method === 'PUT' ? left.shift() : undefined)
    expect(await storage.writeIfAbsent('v1', Buffer.from('mine'))).toBe(true)
    expect(left).toEqual([])
    expect(fake.keys()).toEqual(['lake/.parley-publish', 'lake/v1'])
    expect(await storage.writeIfAbsent('v1', Buffer.from('other'))).toBe(false)
  },
)

test('a lost answer does not hide that another process has written the object', async () => {
  const fake = await fakeS3()
  const storage = await bucketOf(fake)
  await (await bucketOf(fake)).write('v1', Buffer.from('theirs'))
  const faults: FakeFault[] = ['reset']
  fake.fault = ({ method }) => (method === 'PUT' ? faults.shift() : undefined)
  expect(await storage.writeIfAbsent('v1', Buffer.from('mine'))).toBe(false)
  expect(text(await storage.read('v1'))).toBe('theirs')
})

test('a conflict that lasts means that another process writes the object', async () => {
  const fake = await fakeS3()
  const storage = await bucketOf(fake)
  fake.fault = ({ method }) => (method === 'PUT' ? CONFLICT : undefined)
  expect(await storage.writeIfAbsent('v1', Buffer.from('mine'))).toBe(false)
})

test.each<FakeFault>([FAILING, 'reset', 'lost', 'truncated'])(
  'listings, reads, uploads and removals are repeated after %j',
  async fault => {
    const fake = await fakeS3()
    const storage = await bucketOf(fake)
    const failed = new Set<string>()
    fake.fault = ({ method, key }) => {
      const isNew = !failed.has(`${method} ${key}`)
      failed.add(`${method} ${key}`)
      return isNew && (fault !== 'truncated' || method === 'GET') ? fault : undefined
    }
    await upload(storage, 't/file', 'a large file')
    expect(await storage.list('t')).toEqual(['t/file'])
    expect(text(await storage.read('t/file'))).toBe('a large file')
    await storage.remove('t/file')
    expect(fake.keys()).toEqual(['lake/.parley-publish'])
  },
)

test('many requests that wait for their next try cause no warning about listeners', async () => {
  const fake = await fakeS3()
  const storage = await bucketOf(fake, { random: () => 0.1 })
  const warnings: Error[] = []
  const onWarning = (warning: Error) => void warnings.push(warning)
  process.on('warning', onWarning)
  onTestFinished(() => void process.off('warning', onWarning))
  const tried = new Set<string>()
  // All fail together, so that they wait together.
  fake.fault = async ({ key }) => {
    if (tried.has(key)) return undefined
    tried.add(key)
    await until(
      () => tried.size,
      count => count === 30,
    )
    return FAILING
  }
  await Promise.all(Array.from({ length: 30 }, (_, number) => storage.write(`t/${number}`, Buffer.from(''))))
  expect([tried.size, warnings]).toEqual([30, []])
})

test('a request without an answer is given up and repeated', async () => {
  const clock = virtualClock(Date.now())
  const fake = await fakeS3({ now: clock.now })
  const storage = await bucketOf(fake, { clock })
  const faults: FakeFault[] = ['hang']
  fake.fault = () => faults.shift()
  const writing = storage.write('t/one', Buffer.from('1'))
  await until(
    () => faults.length,
    left => left === 0,
  )
  await clock.advance(120_000)
  // The wait before the next try.
  await until(
    async () => {
      await clock.advance(0)
      return fake.keys().length
    },
    count => count === 2,
  )
  await writing
  expect(fake.keys()).toContain('lake/t/one')
})

test('eight files are uploaded at a time, and all of them before the upload counts as done', async () => {
  const fake = await fakeS3()
  const storage = await bucketOf(fake)
  let release: () => void = () => undefined
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  let [begun, running, most] = [0, 0, 0]
  fake.fault = async ({ method }) => {
    if (method !== 'PUT') return undefined
    begun += 1
    running += 1
    most = Math.max(most, running)
    await held
    running -= 1
    return undefined
  }
  for (let number = 0; number < 12; number += 1) {
    write(storage, `t/${number}`, String(number))
  }
  await until(
    () => running,
    count => count >= 8,
  )
  // Meanwhile a ninth upload would have begun.
  for (let number = 0; number < 5; number += 1) expect(await storage.list('t')).toEqual([])
  release()
  await storage.uploaded()
  expect([begun, most, (await storage.list('t')).length]).toEqual([12, 8, 12])
})

test('an upload that fails is thrown at the end, and nothing more is begun after it', async () => {
  const fake = await fakeS3()
  const storage = await bucketOf(fake)
  fake.fault = ({ key }) => (key.endsWith('bad') ? { status: 403, code: 'AccessDenied' } : undefined)
  await expect(upload(storage, 't/bad', '')).rejects.toThrow('is denied')
  expect(() => storage.beginFile('t/next')).toThrow('is denied')
})

test('a file above the limit of one PUT is refused by an error that names the limit', async () => {
  const fake = await fakeS3()
  const storage = await bucketOf(fake)
  write(storage, 't/large', '', 5 * 2 ** 30 + 1)
  await expect(storage.uploaded()).rejects.toThrow(
    `A file for s3://${BUCKET}/lake is larger than 5 GB, the limit of S3 for one PUT: t/large`,
  )
})

test('closing the target stops what is being uploaded', async () => {
  const fake = await fakeS3()
  const storage = await bucketOf(fake)
  fake.fault = () => 'hang'
  write(storage, 't/file', 'content')
  await until(
    () => fake.calls.at(-1)?.key,
    key => key === 'lake/t/file',
  )
  const uploaded = storage.uploaded()
  storage.close()
  await expect(uploaded).rejects.toThrow('The target is closed')
})

interface Refused {
  code: string
  message: RegExp
  hint?: RegExp
  fake?: FakeS3Options
  fault?: FakeFault
  options?: Partial<S3Options>
}

const credentials = { accessKeyId: ACCESS.id, secretAccessKey: ACCESS.secret, sessionToken: undefined }

test.each<[what: string, refused: Refused]>([
  [
    'a bucket that does not exist',
    {
      options: { bucket: 'not-there' },
      code: 'publish-no-bucket',
      message: /^There is no bucket not-there at http:.* \(HTTP 404, NoSuchBucket\)$/,
    },
  ],
  [
    'a wrong secret',
    {
      options: { credentials: { ...credentials, secretAccessKey: 'wrong-SECRET' } },
      code: 'publish-signature',
      message: /refuses the signature \(HTTP 403, SignatureDoesNotMatch\)$/,
      hint: /^Check publish.s3_secret_access_key\.$/,
    },
  ],
  [
    'an unknown access key',
    {
      options: { credentials: { ...credentials, accessKeyId: 'UNKNOWN' } },
      code: 'publish-unknown-key',
      message: /does not know the access key/,
    },
  ],
  [
    'a missing session token',
    {
      fake: { access: { ...ACCESS, token: 'T0KEN' } },
      code: 'publish-token',
      message: /session token .* is not valid/,
    },
  ],
  [
    'a time that the server keeps refusing',
    {
      fault: { status: 403, code: 'RequestTimeTooSkewed' },
      code: 'publish-clock',
      message: /refuses the time of this machine/,
      hint: /Set the clock/,
    },
  ],
  [
    'another region',
    {
      options: { region: 'us-east-1' },
      code: 'publish-region',
      message:
        /^The bucket lake-of-acme is in the region eu-test-1, not in us-east-1 \(HTTP 400, AuthorizationHeaderMalformed\)$/,
      hint: /^Set publish.s3_region to "eu-test-1"\.$/,
    },
  ],
  [
    'a redirect to another region',
    {
      fault: {
        status: 301,
        code: 'PermanentRedirect',
        headers: { 'x-amz-bucket-region': 'ap-test-2', location: 'http://127.0.0.1:9/' },
      },
      code: 'publish-region',
      message: /is in the region ap-test-2, not in eu-test-1/,
    },
  ],
  [
    'a redirect to elsewhere',
    {
      fault: { status: 307, headers: { location: 'http://127.0.0.1:9/' } },
      code: 'publish-region',
      message: /redirects to another address, which parley does not follow \(HTTP 307\)$/,
    },
  ],
  [
    'a denied access',
    {
      fault: { status: 403, code: 'AccessDenied' },
      code: 'publish-denied',
      message: /^Access to s3:\/\/lake-of-acme\/lake is denied \(HTTP 403, AccessDenied\)$/,
      hint: /s3:ListBucket/,
    },
  ],
  [
    'an unknown error code',
    {
      fault: { status: 403, code: `${PRIVATE_TEXT}` },
      code: 'publish-denied',
      message: /is denied \(HTTP 403\)$/,
    },
  ],
  [
    'a server that keeps failing',
    { fault: SLOW_DOWN, code: 'publish-failing', message: /kept failing \(HTTP 503, SlowDown\)$/ },
  ],
  [
    'a server that resets every connection',
    {
      fault: 'reset',
      code: 'publish-unreachable',
      message: /cannot be reached: (UND_ERR_SOCKET|ECONNRESET)$/,
      hint: /s3_endpoint/,
    },
  ],
  [
    'a server that ignores If-None-Match',
    {
      fake: { ignoresConditions: true },
      code: 'publish-no-condition',
      message: /does not support If-None-Match/,
    },
  ],
  [
    'a server that does not know If-None-Match',
    {
      fault: { status: 501, code: 'NotImplemented' },
      code: 'publish-no-condition',
      message: /does not support If-None-Match/,
    },
  ],
])(
  '%s is an error of status 73 with a hint, and has no text of the server and no secret',
  async (_, refused) => {
    const fake = await fakeS3(refused.fake)
    fake.fault = () => refused.fault
    const error: StopError = await bucketOf(fake, refused.options).then(
      () => expect.unreachable('it was opened'),
      (reason: StopError) => reason,
    )
    expect(error.exitStatus).toBe(EXIT_STATUS.databaseUnavailable)
    expect(error.code).toBe(refused.code)
    expect(error.message).toMatch(refused.message)
    expect(error.hint).toMatch(refused.hint ?? /\.$/)
    expect(`${error.message} ${error.hint} ${JSON.stringify(error)} ${String(error.cause)}`).not.toMatch(
      new RegExp(`${PRIVATE_TEXT}|S3CRET|wrong-SECRET|T0KEN|Signature=`),
    )
  },
)

test('a bucket at an address without a server cannot be reached', async () => {
  const closed = createServer()
  await new Promise<void>(resolve => closed.listen(0, '127.0.0.1', resolve))
  const { port } = closed.address() as { port: number }
  await new Promise<void>(resolve => closed.close(() => resolve()))
  const url = `http://127.0.0.1:${port}`
  await expect(bucketOf({ url })).rejects.toMatchObject({
    message: `${url} cannot be reached: ECONNREFUSED`,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
})

test.each<[what: string, start: () => Promise<string>, reason: RegExp, hint: RegExp]>([
  [
    'with a certificate that is not trusted',
    async () => `https://localhost:${await serveHttps(createCertificate(['localhost']), () => undefined)}`,
    /its certificate is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\); .* NODE_EXTRA_CA_CERTS$/,
    /^If the certificate is one of your company, name its file by NODE_EXTRA_CA_CERTS\./,
  ],
  [
    'that does not speak TLS',
    async () => (await fakeS3()).url.replace('http:', 'https:'),
    /this port does not seem to speak TLS \(ERR_SSL\w+\); for a server on this machine, try http:/,
    /^Check publish\.s3_endpoint, .* and the proxy if there is one\./,
  ],
])('a bucket at a port %s is described as the API is', async (_, start, reason, hint) => {
  const url = await start()
  const error = await bucketOf({ url }).catch((found: StopError) => found)
  expect(error).toMatchObject({ code: 'publish-unreachable', message: expect.stringMatching(reason) })
  expect((error as StopError).message).toContain(`${url} cannot be reached: `)
  expect((error as StopError).hint).toMatch(hint)
})

test('a web page in place of a listing is an error that names the endpoint', async () => {
  const page = createServer((_, response) => void response.end('<!DOCTYPE html><html></html>'))
  await new Promise<void>(resolve => page.listen(0, '127.0.0.1', resolve))
  const { port } = page.address() as { port: number }
  await expect(bucketOf({ url: `http://127.0.0.1:${port}` })).rejects.toThrow('is not that of an S3 API')
  await new Promise(resolve => {
    page.close(resolve)
    page.closeAllConnections()
  })
})

test('a prefix with other objects is refused and not changed', async () => {
  const fake = await fakeS3()
  fake.objects.set('lake/', { bytes: Buffer.from(''), at: 0 })
  fake.objects.set('lake/members/of-another-program.parquet', { bytes: Buffer.from(''), at: 0 })
  const before = fake.keys()
  await expect(bucketOf(fake)).rejects.toMatchObject({
    code: 'publish-foreign',
    exitStatus: EXIT_STATUS.usage,
  })
  expect(fake.keys()).toEqual(before)
  await bucketOf(fake, { prefix: 'lake/of-parley' })
  expect(fake.keys()).toContain('lake/of-parley/.parley-publish')
})

test('a wrong clock of this machine is corrected by the time of the server', async () => {
  const fake = await fakeS3({ now: datedClock().now })
  const storage = await bucketOf(fake)
  await storage.write('t/one', Buffer.from('1'))
  expect(text(await storage.read('t/one'))).toBe('1')
})

test('a session token is sent and signed', async () => {
  const fake = await fakeS3({ access: { ...ACCESS, token: 'T0KEN' } })
  const storage = await bucketOf(fake, { credentials: { ...credentials, sessionToken: 'T0KEN' } })
  await storage.write('t/one', Buffer.from('1'))
  expect(fake.keys()).toContain('lake/t/one')
})

test('an aborted signal ends a request and its waits with the reason of the signal', async () => {
  const fake = await fakeS3()
  const stop = new AbortController()
  const storage = await bucketOf(fake, { signal: stop.signal, random: () => 1 })
  fake.fault = () => {
    stop.abort(new Error('stopped by a person'))
    return FAILING
  }
  await expect(storage.write('t/one', Buffer.from('1'))).rejects.toThrow('stopped by a person')
})

test('a file that is written for a bucket has no name that other users could see', async () => {
  const temporary = newFolder()
  const storage = await bucketOf(await fakeS3(), { temporary })
  const { file, abandon } = storage.beginFile('t/one')
  expect([fstatSync(file).mode & 0o777, readdirSync(temporary)]).toEqual([0o600, []])
  abandon()
})

test('a temporary folder that does not exist is an error of status 73 that names TMPDIR', async () => {
  const storage = await bucketOf(await fakeS3(), { temporary: '/nowhere' })
  expect(() => storage.beginFile('t/one')).toThrow(
    expect.objectContaining({
      message: 'Cannot write a temporary file in /nowhere',
      hint: expect.stringContaining('TMPDIR'),
      exitStatus: EXIT_STATUS.databaseUnavailable,
    }),
  )
})
