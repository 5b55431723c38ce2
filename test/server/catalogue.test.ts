import { describe, expect, test } from 'vitest'
import { EXIT_STATUS, StopError } from '../../src/base/errors.ts'
import type { ServedCatalogue } from '../../src/server/catalogue.ts'
import type { StatusServerDeps } from '../../src/server/server.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { type AskOptions, freePath, type Started, start } from './status-server.ts'

const TOKEN = 'a-token-of-the-catalogue'
const METADATA = '{"format-version":2,"current-snapshot-id":9007199254740993}'

const CATALOGUE: ServedCatalogue = {
  publication: async () => ({ tables: ['meetings', 'messages'], properties: { publication: '3' } }),
  table: async name =>
    name === 'meetings'
      ? { tag: 'u-7', address: 's3://b/meetings/metadata/v7.metadata.json', metadata: METADATA }
      : undefined,
}

const failing = (error: Error): ServedCatalogue => ({
  publication: async () => Promise.reject(error),
  table: async () => Promise.reject(error),
})

const served = (
  catalogue: Partial<ServedCatalogue> = {},
  deps: Partial<StatusServerDeps> = {},
): Promise<Started> =>
  start({ catalogue: { catalogue: { ...CATALOGUE, ...catalogue }, token: TOKEN }, ...deps })

const withToken = (options: AskOptions = {}, token = TOKEN): AskOptions => ({
  ...options,
  headers: { authorization: `Bearer ${token}`, ...options.headers },
})

async function read({ ask }: Started, path: string, method = 'GET', options: AskOptions = {}) {
  const { status, text, headers } = await ask(method, `/iceberg/v1/${path}`, withToken(options))
  return { status, headers, body: text === '' ? undefined : JSON.parse(text) }
}

const errorOf = (code: number, type: string, message: unknown = expect.any(String)) => ({
  status: code,
  body: { error: { code, type, message } },
})

describe('the answers of the catalogue', () => {
  test('the configuration names the requests that the catalogue answers', async () => {
    const { status, body } = await read(await served(), 'config?warehouse=any')
    expect([status, body.defaults, body.overrides]).toEqual([200, {}, {}])
    expect(body.endpoints).toEqual([
      'GET /v1/{prefix}/namespaces',
      'GET /v1/{prefix}/namespaces/{namespace}',
      'HEAD /v1/{prefix}/namespaces/{namespace}',
      'GET /v1/{prefix}/namespaces/{namespace}/tables',
      'GET /v1/{prefix}/namespaces/{namespace}/tables/{table}',
      'HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}',
      'POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics',
    ])
  })

  test.each([
    ['namespaces', { namespaces: [['parley']] }],
    ['namespaces?parent=', { namespaces: [['parley']] }],
    ['namespaces?pageToken=&pageSize=1', { namespaces: [['parley']] }],
    ['namespaces?parent=parley', { namespaces: [] }],
    ['namespaces/parley', { namespace: ['parley'], properties: { publication: '3' } }],
    [
      'namespaces/parley/tables',
      {
        identifiers: [
          { namespace: ['parley'], name: 'meetings' },
          { namespace: ['parley'], name: 'messages' },
        ],
      },
    ],
    ['namespaces/parley/views', { identifiers: [] }],
  ])('GET %s answers %j', async (path, body) => {
    expect(await read(await served(), path)).toMatchObject({ status: 200, body })
  })

  test('a table is the address of its metadata and the stored metadata, digit by digit', async () => {
    const { ask } = await served()
    const path = '/iceberg/v1/namespaces/parley/tables/meetings?snapshots=refs'
    const { status, text, headers } = await ask('GET', path, withToken())
    expect([status, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8'])
    expect(text).toBe(
      `{"metadata-location":"s3://b/meetings/metadata/v7.metadata.json","metadata":${METADATA},"config":{}}`,
    )
  })

  test('a client that has the newest metadata gets 304 without a body', async () => {
    const started = await served()
    const path = 'namespaces/parley/tables/meetings'
    const { headers } = await read(started, path)
    const etag = String(headers['etag'])
    const again = (value: string) => read(started, path, 'GET', { headers: { 'if-none-match': value } })
    expect(await again(etag)).toMatchObject({ status: 304, body: undefined, headers: { etag } })
    expect(await again(`"other", W/${etag}`)).toMatchObject({ status: 304 })
    expect(await again('"other"')).toMatchObject({ status: 200 })
  })

  test.each([
    ['namespaces/other', 'NoSuchNamespaceException'],
    ['namespaces?parent=other', 'NoSuchNamespaceException'],
    ['namespaces/parley%1Finner', 'NoSuchNamespaceException'],
    ['namespaces/other/tables', 'NoSuchNamespaceException'],
    ['namespaces/other/views', 'NoSuchNamespaceException'],
    ['namespaces/parley/tables/other', 'NoSuchTableException'],
    ['namespaces/parley%1Fmeetings/tables/snapshots', 'NoSuchTableException'],
    ['namespaces/parley/views/meetings', 'NoSuchViewException'],
    ['namespaces/parley/tables/meetings/credentials', 'NotFoundException'],
    ['namespaces/parley/tables/meetings/metrics', 'NotFoundException'],
    ['', 'NotFoundException'],
    ['../../status', 'NotFoundException'],
  ])('GET %s answers 404 with %s', async (path, type) => {
    expect(await read(await served(), path)).toMatchObject(errorOf(404, type))
  })

  test('HEAD says by its status whether a namespace or a table exists', async () => {
    const started = await served()
    const heads = [
      'namespaces/parley',
      'namespaces/parley/tables/meetings',
      'namespaces/x',
      'namespaces/parley/tables/x',
    ]
    const answers = await Promise.all(heads.map(path => read(started, path, 'HEAD')))
    expect(answers.map(({ status, body }) => [status, body])).toEqual([
      [204, undefined],
      [204, undefined],
      [404, undefined],
      [404, undefined],
    ])
  })

  test('a report of metrics is accepted and not read, whatever it is', async () => {
    const { ask } = await served()
    const path = '/iceberg/v1/namespaces/parley/tables/meetings/metrics'
    for (const body of ['{}', 'x'.repeat(200_000)])
      expect(
        await ask('POST', path, withToken({ body, headers: { 'content-type': 'application/json' } })),
      ).toMatchObject({
        status: 204,
        text: '',
      })
  })

  test.each([
    ['POST', 'namespaces'],
    ['POST', 'namespaces/parley/tables'],
    ['POST', 'namespaces/parley/tables/meetings'],
    ['DELETE', 'namespaces/parley/tables/meetings?purgeRequested=true'],
    ['DELETE', 'namespaces/parley'],
    ['POST', 'transactions/commit'],
    ['PUT', 'nothing'],
  ])('%s %s is forbidden', async (method, path) => {
    const body = { body: '{}', headers: { 'content-type': 'application/json' } }
    expect(await read(await served(), path, method, method === 'DELETE' ? {} : body)).toMatchObject(
      errorOf(403, 'ForbiddenException'),
    )
  })

  test('a target that cannot be read is a 503 with the reason, and other requests are still answered', async () => {
    const error = new StopError('There is no bucket lake', {
      code: 'publish-no-bucket',
      exitStatus: EXIT_STATUS.databaseUnavailable,
    })
    const started = await served(failing(error))
    const expected = errorOf(503, 'ServiceUnavailableException', 'There is no bucket lake')
    expect(await read(started, 'namespaces/parley/tables')).toMatchObject({
      ...expected,
      headers: { 'retry-after': '5' },
    })
    expect(await read(started, 'namespaces/parley/tables/meetings')).toMatchObject(expected)
    expect(await read(started, 'config')).toMatchObject({ status: 200 })
    expect(await started.ask('GET', '/livez')).toMatchObject({ status: 200 })
    expect(started.lines.join('')).not.toContain('failed to answer')
  })

  test('a fault is a 500 without details, which are in the log', async () => {
    const started = await served(failing(new Error('secret details')))
    const { status, body } = await read(started, 'namespaces/parley/tables')
    expect(status).toBe(500)
    expect(JSON.stringify(body)).not.toContain('details')
    expect(started.lines.join('')).toContain('secret details')
  })
})

describe('the token of the catalogue', () => {
  const PAGE_TOKEN = 'a-token-of-the-status-server'

  test('a client that asks for a token with an id and a secret reads that it needs the token itself', async () => {
    const { ask } = await served()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const body = 'grant_type=client_credentials&client_id=id&client_secret=secret&scope=catalog'
    for (const token of [{}, { authorization: `Bearer ${TOKEN}` }]) {
      const answer = await ask('POST', '/iceberg/v1/oauth/tokens', {
        headers: { ...headers, ...token },
        body,
      })
      expect(answer.status).toBe(400)
      expect(JSON.parse(answer.text)).toEqual({
        error: 'unsupported_grant_type',
        error_description: expect.stringContaining('http.catalogue_token as the token of the client'),
      })
    }
    expect(await ask('GET', '/iceberg/v1/oauth/tokens')).toMatchObject({ status: 401 })
  })

  test.each([
    ['no token', undefined],
    ['another token', `Bearer ${TOKEN}x`],
    ['the token of the page', `Bearer ${PAGE_TOKEN}`],
  ])('the catalogue answers %s with 401', async (_, authorization) => {
    const { ask } = await served({}, { token: PAGE_TOKEN })
    const headers = { ...(authorization !== undefined && { authorization }) }
    const answer = await ask('GET', '/iceberg/v1/config', { headers })
    expect({ status: answer.status, body: JSON.parse(answer.text) }).toEqual(
      errorOf(401, 'NotAuthorizedException'),
    )
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="parley"')
  })

  test('the token of the catalogue opens the catalogue and no other path', async () => {
    const { ask } = await served({}, { token: PAGE_TOKEN })
    expect((await ask('GET', '/iceberg/v1/config', withToken())).status).toBe(200)
    for (const path of ['/', '/status', '/metrics', '/iceberge', '/x?/iceberg/v1/config'])
      expect([path, (await ask('GET', path, withToken())).status]).toEqual([path, 401])
  })

  test('the catalogue asks for its token on a socket too', async () => {
    const { ask } = await served({}, { listen: { at: 'socket', path: freePath('s') } })
    expect((await ask('GET', '/iceberg/v1/config')).status).toBe(401)
    expect((await ask('GET', '/iceberg/v1/config', withToken())).status).toBe(200)
  })

  test('guesses are limited, and the right token is answered meanwhile', async () => {
    const { ask } = await served({}, { clock: virtualClock(0) })
    const guess = () => ask('GET', '/iceberg/v1/config', withToken({}, 'a-guess-at-the-token'))
    for (let guesses = 0; guesses < 50; guesses += 1) expect((await guess()).status).toBe(401)
    const { status, text } = await guess()
    expect({ status, body: JSON.parse(text) }).toEqual(errorOf(429, 'TooManyRequestsException'))
    expect((await ask('GET', '/iceberg/v1/config', withToken())).status).toBe(200)
  })

  test('on loopback the catalogue accepts no other host name', async () => {
    const { ask } = await served()
    const options = withToken({ headers: { host: 'evil.example' } })
    expect((await ask('GET', '/iceberg/v1/config', options)).status).toBe(403)
  })

  test('without a catalogue there is no such path', async () => {
    const { ask } = await start()
    expect((await ask('GET', '/iceberg/v1/config', withToken())).status).toBe(404)
  })
})
