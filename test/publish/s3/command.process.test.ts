import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../../src/base/errors.ts'
import { emptyFolder, parley, parleyProcess, startParley } from '../../cli/parley.ts'
import { type TemporaryStore, temporaryStore } from '../../store/temporary-store.ts'
import { until } from '../../support/until.ts'
import { ACCESS, BUCKET, type FakeS3, fakeS3, PRIVATE_TEXT } from './fake-s3.ts'

const TARGET = `s3://${BUCKET}/lake`

/** A folder with settings for the fake S3. The secret is in a separate file. */
function placeFor({ url }: FakeS3, secret: string = ACCESS.secret) {
  const cwd = emptyFolder()
  mkdirSync(join(cwd, 'config'))
  mkdirSync(join(cwd, 'tmp'))
  const settings = join(cwd, 'config', 'parley.toml')
  writeFileSync(
    settings,
    `[publish]\ns3_endpoint = "${url}"\ns3_region = "${ACCESS.region}"\ns3_access_key_id = "${ACCESS.id}"\ns3_secret_access_key_file = "s3.secret"\n`,
  )
  writeFileSync(join(cwd, 'config', 's3.secret'), `${secret}\n`)
  chmodSync(join(cwd, 'config', 's3.secret'), 0o600)
  return { cwd, env: { TMPDIR: join(cwd, 'tmp') } }
}

function filledStore(): TemporaryStore {
  const store = temporaryStore()
  store.put('members', [{ id: 'm', name: 'M' }], { now: '2026-01-01T00:00:00.000Z' })
  return store
}

test('the command publishes to a bucket with the settings of the file, and says so', async () => {
  const fake = await fakeS3()
  const store = filledStore()
  const place = placeFor(fake)
  const { status, stdout, stderr } = await parley(
    ['publish', `${TARGET}/`, '--json', '--database', store.path],
    place,
  )
  expect([status, stderr]).toEqual([EXIT_STATUS.done, ''])
  expect(JSON.parse(stdout)).toMatchObject({ target: TARGET, publication: 1 })
  expect(fake.keys()).toContain('lake/members/metadata/v1.metadata.json')
  const metadata = JSON.parse(String(fake.objects.get('lake/members/metadata/v1.metadata.json')?.bytes))
  expect(metadata.location).toBe(`${TARGET}/members`)
  expect(readdirSync(place.env.TMPDIR)).toEqual([])
})

test.each([
  's3://',
  's3:///lake',
  's3:/bucket/lake',
  's3:bucket',
  's3://Bucket/lake',
  's3://a/b',
  's3://bucket//lake//x',
  's3://bucket/../lake',
  's3://bucket/lake?x=1',
  's3://user:pa55@bucket/lake',
  's3a://bucket/lake',
  'gs://bucket/lake',
  'https://user:pa55@bucket.example/lake',
  'file:///data/lake',
])('the target %s is a usage error that says what is expected', async target => {
  const { status, stderr } = await parley(['publish', target])
  expect(status).toBe(EXIT_STATUS.usage)
  expect(stderr).toMatch(/^parley: ".*" is not a target: expected a folder or s3:\/\/bucket\/prefix\nhint: /)
  expect(stderr).not.toContain('pa55')
})

test('a target in S3 without an access key is an error of status 78 that names the setting', async () => {
  const store = filledStore()
  const args = ['publish', TARGET, '--database', store.path]
  const without = await parley(args, { env: { AWS_EC2_METADATA_DISABLED: 'true' } })
  expect(without).toMatchObject({ status: EXIT_STATUS.settings })
  expect(without.stderr).toMatch(
    /^parley: There are no credentials for s3:.*: publish\.s3_access_key_id and publish\.s3_secret_access_key are not set, .*\nhint: /,
  )
  const half = await parley([...args, '--s3-access-key-id', 'AKID'])
  expect(half).toMatchObject({ status: EXIT_STATUS.settings })
  expect(half.stderr).toContain('publish.s3_secret_access_key is not set')
})

test('the file with the secret is read only for a target in S3', async () => {
  const store = filledStore()
  const env = { PARLEY_PUBLISH_S3_SECRET_ACCESS_KEY_FILE: '/nowhere/s3.secret' }
  const cwd = emptyFolder()
  const args = (target: string) => ['publish', target, '--database', store.path]
  expect(await parley(args('lake'), { cwd, env })).toMatchObject({ status: EXIT_STATUS.done, stderr: '' })
  const { status, stderr } = await parley(args(TARGET), { cwd, env })
  expect(status).toBe(EXIT_STATUS.settings)
  expect(stderr).toContain("the S3 secret access key's file /nowhere/s3.secret")
})

test('an endpoint with plain http is allowed on this machine only', async () => {
  const store = filledStore()
  const args = ['publish', TARGET, '--database', store.path, '--s3-endpoint', 'http://minio.example:9000']
  const { status, stderr } = await parley(args)
  expect(status).toBe(EXIT_STATUS.settings)
  expect(stderr).toContain(
    'publish.s3_endpoint is "http://minio.example:9000" in flag --s3-endpoint: expected an https URL, or an http URL of this machine',
  )
})

test('no secret and no text of the server is in the output of a refused publication', async () => {
  const fake = await fakeS3()
  const store = filledStore()
  const args = ['publish', TARGET, '--database', store.path]
  const refused = await parley(args, placeFor(fake, 'wrong-S3CRET'))
  expect(refused.status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(refused.stderr).toMatch(
    /refuses the signature \(HTTP 403, SignatureDoesNotMatch\)\nhint: Check publish\.s3_secret/,
  )
  fake.fault = ({ key }) => (key.endsWith('.parquet') ? { status: 403, code: 'AccessDenied' } : undefined)
  const denied = await parley(args, placeFor(fake))
  expect(denied.status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(denied.stderr).toContain(`Access to ${TARGET} is denied (HTTP 403, AccessDenied)`)
  const all = [refused, denied].map(({ stdout, stderr }) => stdout + stderr).join('')
  expect(all).not.toMatch(new RegExp(`S3CRET|${PRIVATE_TEXT}|Signature=`))
})

test('a complete publication whose earlier files cannot be removed ends with 73, and its row has both', async () => {
  const fake = await fakeS3()
  const store = filledStore()
  const place = placeFor(fake)
  const publish = () => parley(['publish', TARGET, '--keep', '1', '--json', '--database', store.path], place)
  await publish()
  store.put('members', [{ id: 'm', name: 'N' }], { now: '2026-01-02T00:00:00.000Z' })
  fake.fault = ({ method }) => (method === 'DELETE' ? { status: 403, code: 'AccessDenied' } : undefined)
  const ended = await publish()
  expect(ended.status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(ended.stderr).toMatch(
    /^parley: Publication 2 is complete; files of earlier ones could not be removed: Access to .* is denied .*\nhint: The access key needs .*s3:DeleteObject/,
  )
  const denied = { code: 'publish-denied', message: expect.stringContaining('is denied') }
  expect(JSON.parse(ended.stdout)).toMatchObject({ publication: 2, removal_error: denied })
  fake.fault = () => undefined
  const next = await publish()
  expect(next).toMatchObject({ status: EXIT_STATUS.done, stderr: '' })
  expect(JSON.parse(next.stdout)).toMatchObject({ publication: 3, removal_error: null })
  const rows = store.all('SELECT publication, error_code, error FROM sync_publications ORDER BY id')
  expect(rows).toEqual([
    { publication: 1, error_code: null, error: null },
    {
      publication: 2,
      error_code: 'publish-denied',
      error: expect.stringMatching(/^Publication 2 is complete; .*s3:DeleteObject/),
    },
    { publication: 3, error_code: null, error: null },
  ])
})

test('a bucket that has lost its publications is begun again, and the command says so', async () => {
  const fake = await fakeS3()
  const store = filledStore()
  const place = placeFor(fake)
  const publish = () => parley(['publish', TARGET, '--database', store.path], place)
  await publish()
  fake.objects.clear()
  const ended = await publish()
  expect(ended).toMatchObject({ status: EXIT_STATUS.done })
  expect(ended.stderr).toContain(`${TARGET} is empty; the last one known is publication 1 of `)
})

/** Resolves when a file with rows is being uploaded. Other requests may follow meanwhile. */
async function untilUploading({ calls }: FakeS3): Promise<void> {
  const isUploading = () => calls.some(({ key }) => key.endsWith('.parquet'))
  expect(await until(isUploading, Boolean, { moves: () => calls.length })).toBe(true)
}

test('a killed publication shows no secret to other users and leaves no temporary file, and the next one is complete', async () => {
  const fake = await fakeS3()
  const store = filledStore()
  const place = placeFor(fake)
  const args = ['publish', TARGET, '--database', store.path]
  fake.fault = ({ key }) => (key.endsWith('.parquet') ? 'hang' : undefined)
  const running = startParley(args, place)
  await untilUploading(fake)
  expect(readFileSync(`/proc/${running.child.pid}/cmdline`, 'utf8')).not.toContain(ACCESS.secret)
  running.child.kill('SIGKILL')
  await running.ended
  expect(readdirSync(place.env.TMPDIR)).toEqual([])
  fake.fault = () => undefined
  expect(await parleyProcess(args, place)).toMatchObject({ status: EXIT_STATUS.done })
  expect(fake.keys()).toContain('lake/publications/metadata/v1.metadata.json')
})

test('a signal ends a publication with 75 while a file is being uploaded, and removes its temporary files', async () => {
  const fake = await fakeS3()
  const store = filledStore()
  const place = placeFor(fake)
  fake.fault = ({ key }) => (key.endsWith('.parquet') ? 'hang' : undefined)
  const running = startParley(['publish', TARGET, '--database', store.path], place)
  await untilUploading(fake)
  running.child.kill('SIGTERM')
  expect(await running.ended).toMatchObject({ status: EXIT_STATUS.unfinished })
  expect(readdirSync(place.env.TMPDIR)).toEqual([])
})
