import { once } from 'node:events'
import { existsSync, linkSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EXIT_STATUS, StopError } from '../../src/base/errors.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { runs } from '../support/effort.ts'
import { type AskOptions, askAt, freePath, SECRET, type Started, start } from './status-server.ts'

const JSON_BODY = { 'content-type': 'application/json' }
const EVENT = JSON.stringify({ type: 'meeting.completed.beta', data: { meeting_id: 'm1' } })

const nudge = ({ ask }: Started, path: string, options: AskOptions = {}) =>
  ask('POST', path, { body: EVENT, ...options, headers: { ...JSON_BODY, ...options.headers } })

/** A raw connection; `said` is everything that was received until it closed. */
function open({ server }: Started): { socket: Socket; said: Promise<string> } {
  const socket = connect(Number(/\d+$/.exec(server.address ?? '')?.[0]), '127.0.0.1')
  let text = ''
  socket.on('data', chunk => {
    text += chunk
  })
  socket.on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  // `once` would be rejected by an error of the connection.
  const closed = new Promise(resolve => socket.once('close', resolve))
  return { socket, said: closed.then(() => text) }
}

const HEAD = `POST /nudge HTTP/1.1\r\nhost: localhost\r\nx-nudge-secret: ${SECRET}\r\ncontent-type: application/json\r\n`

describe('the status pages', () => {
  test('a page answers 200 while all is well', async () => {
    const { ask } = await start()
    expect(await ask('GET', '/livez')).toMatchObject({ status: 200, text: 'ok\n' })
    expect(await ask('GET', '/readyz')).toMatchObject({ status: 200, text: 'ok\n' })
  })

  test('a page says why it is not well', async () => {
    const { ask } = await start({ stuck: () => 'stuck', ready: () => 'the disk is full' })
    expect(await ask('GET', '/livez')).toMatchObject({ status: 503, text: 'stuck\n' })
    expect(await ask('GET', '/readyz')).toMatchObject({ status: 503, text: 'the disk is full\n' })
  })

  test('the status is sent as given', async () => {
    const { ask } = await start({ status: () => ({ resources: [{ resource: 'members' }] }) })
    const { status, text, headers } = await ask('GET', '/status')
    expect([status, JSON.parse(text), headers['cache-control']]).toEqual([
      200,
      { resources: [{ resource: 'members' }] },
      'no-store',
    ])
  })

  test('a status that fails is a 500 without details, and the log says which', async () => {
    const { ask, lines } = await start({
      status: () => {
        throw new Error('secret details')
      },
    })
    const { status, text } = await ask('GET', '/status')
    expect([status, JSON.parse(text)]).toEqual([500, { error: 'Internal error; see the log of the daemon' }])
    expect(lines.join('')).toContain('secret details')
  })

  test('a status that cannot read the warehouse is a 503 that says why', async () => {
    const { ask, lines } = await start({
      status: () => {
        throw new StopError('There is no warehouse at parley.db yet', {
          code: 'no-database',
          exitStatus: EXIT_STATUS.databaseUnavailable,
        })
      },
    })
    const { status, text } = await ask('GET', '/status')
    expect([status, JSON.parse(text)]).toEqual([503, { error: 'There is no warehouse at parley.db yet' }])
    expect(lines.join('')).not.toContain('failed to answer')
  })

  test('a page answers HEAD without a body', async () => {
    const { ask } = await start()
    expect(await ask('HEAD', '/readyz')).toMatchObject({ status: 200, text: '' })
  })
})

const TOKEN = 'a-token-of-the-status-server'
const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('the report', () => {
  const POLICY = "default-src 'none'; style-src 'sha256-abc'"
  const HTML = '<!doctype html><title>Report</title>'
  const served = (html = async () => HTML) => ({ token: TOKEN, report: { html, policy: POLICY } })
  const authorization = `Bearer ${TOKEN}`

  test('it is not served unless it is switched on', async () => {
    const { ask } = await start({ token: TOKEN })
    expect((await ask('GET', '/report', { headers: { authorization } })).status).toBe(404)
  })

  test('it is served to those who have the token, without scripts and not to be stored', async () => {
    const { ask } = await start(served())
    const { status, text, headers } = await ask('GET', '/report', { headers: { authorization } })
    expect([status, text]).toEqual([200, HTML])
    expect(headers).toMatchObject({
      'content-security-policy': POLICY,
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
    })
  })

  test.each([
    ['/report', {}],
    ['/report?x', {}],
    ['/report', { authorization: 'Bearer another-token-of-16' }],
  ])('%s with the headers %o is a 401', async (path, headers) => {
    let isMade = false
    const { ask } = await start(
      served(async () => {
        isMade = true
        return HTML
      }),
    )
    expect([(await ask('GET', path, { headers })).status, isMade]).toEqual([401, false])
  })

  test('on a Unix socket it asks for the token, and the status does not', async () => {
    const { ask } = await start({ ...served(), listen: { at: 'socket', path: freePath('parley.sock') } })
    expect((await ask('GET', '/report')).status).toBe(401)
    expect((await ask('GET', '/report', { headers: { authorization } })).status).toBe(200)
    expect((await ask('GET', '/status')).status).toBe(200)
  })

  test('another site may link to it, and not load it', async () => {
    const { ask } = await start(served())
    const from = (mode: string) =>
      ask('GET', '/report', {
        headers: { authorization, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': mode },
      })
    expect([(await from('navigate')).status, (await from('no-cors')).status]).toEqual([200, 403])
  })

  test('a report that cannot read the warehouse is a 503 that says why', async () => {
    const { ask } = await start(
      served(async () => {
        throw new StopError('There is no warehouse at parley.db yet', {
          code: 'no-database',
          exitStatus: EXIT_STATUS.databaseUnavailable,
        })
      }),
    )
    const { status, text } = await ask('GET', '/report', { headers: { authorization } })
    expect([status, JSON.parse(text)]).toEqual([503, { error: 'There is no warehouse at parley.db yet' }])
  })
})

describe('the requests that the status server refuses', () => {
  test.each([
    ['GET', '/page', 404],
    ['POST', '/', 405],
    ['GET', '/livez/x', 404],
    ['POST', '/status', 405],
    ['DELETE', '/metrics', 405],
    ['GET', '/nudge', 405],
    ['GET', `/nudge/${encodeURIComponent(SECRET)}`, 405],
    ['GET', '/%zz', 400],
  ])('%s %s answers %i', async (method, path, status) => {
    const { ask } = await start()
    const answer = await ask(method, path)
    expect(answer.status).toBe(status)
    expect(Object.keys(JSON.parse(answer.text))).toEqual(['error'])
    expect(answer.text).not.toContain(SECRET)
  })

  test.each([
    ['evil.example', 403],
    ['evil.example:8787', 403],
    ['127.0.0.1.evil.example', 403],
    ['localhost', 200],
    ['localhost:1', 200],
    ['127.0.0.1:8787', 200],
    ['[::1]:8787', 200],
  ])('a request with the host %s answers %i', async (host, status) => {
    const { ask } = await start()
    expect((await ask('GET', '/status', { headers: { host } })).status).toBe(status)
  })

  test.each([
    ['/', 'cross-site', 'navigate', 200],
    ['/', 'cross-site', 'no-cors', 403],
    ['/live.js', 'cross-site', 'no-cors', 403],
    ['/livez', 'cross-site', 'navigate', 403],
    ['/live.js', 'same-origin', 'cors', 200],
    ['/status', 'none', 'navigate', 200],
  ])('a browser that asks for %s, %s by %s, gets %i', async (path, site, mode, status) => {
    const { ask } = await start()
    const headers = { 'sec-fetch-site': site, 'sec-fetch-mode': mode }
    expect((await ask('GET', path, { headers })).status).toBe(status)
  })
})

describe('a webhook', () => {
  test('a webhook is accepted with the secret in the header or in the path', async () => {
    const started = await start()
    const byHeader = await nudge(started, '/nudge', { headers: { 'x-nudge-secret': SECRET } })
    const byPath = await nudge(started, `/nudge/${encodeURIComponent(SECRET)}`)
    expect([byHeader, byPath].map(({ status, text }) => [status, text])).toEqual([
      [202, '{}'],
      [202, '{}'],
    ])
    expect(started.nudges.map(({ kind, meetings }) => [kind, meetings])).toEqual([
      ['meeting.completed.beta', ['m1']],
      ['meeting.completed.beta', ['m1']],
    ])
  })

  test.each([
    ['no secret', '/nudge', {}],
    ['a wrong one in the header', '/nudge', { 'x-nudge-secret': `${SECRET}x` }],
    ['a wrong one in the path', '/nudge/wrong', {}],
    ['an empty one', '/nudge/', { 'x-nudge-secret': '' }],
    [
      'a wrong header with the right path',
      `/nudge/${encodeURIComponent(SECRET)}`,
      { 'x-nudge-secret': 'wrong' },
    ],
  ])('a webhook with %s is refused and reaches no handler', async (_, path, headers) => {
    const started = await start()
    const answer = await nudge(started, path, { headers })
    expect([answer.status, started.nudges]).toEqual([403, []])
  })

  test('a webhook is refused when no secret is set', async () => {
    const started = await start({ nudgeSecret: undefined })
    expect((await nudge(started, '/nudge')).status).toBe(404)
  })

  test.each([
    ['that is no JSON', '{"meeting_id":', JSON_BODY, 400],
    ['that is empty', '', JSON_BODY, 400],
    ['of another type', EVENT, { 'content-type': 'text/plain' }, 415],
    ['of more than 64 KiB', JSON.stringify({ text: 'x'.repeat(65 * 1024) }), JSON_BODY, 413],
  ])(
    'a webhook with a body %s is refused, and the answer quotes nothing of it',
    async (_, body, headers, status) => {
      const started = await start()
      const answer = await nudge(started, '/nudge', {
        body,
        headers: { ...headers, 'x-nudge-secret': SECRET },
      })
      expect([answer.status, started.nudges]).toEqual([status, []])
      expect(answer.text).not.toContain('meeting_id')
      expect(started.lines.join('')).not.toContain('meeting_id')
    },
  )

  test('a webhook without a body is refused', async () => {
    const started = await start()
    const answer = await started.ask('POST', '/nudge', { headers: { 'x-nudge-secret': SECRET } })
    expect([answer.status, started.nudges]).toEqual([400, []])
    expect(await started.metrics.text()).toContain('parley_nudges_refused_total{reason="bad-body"} 1')
  })

  test('a webhook whose handler fails is a 500, and its log line has no path', async () => {
    const started = await start({
      nudge: () => {
        throw new Error('cannot be followed')
      },
    })
    expect((await nudge(started, `/nudge/${encodeURIComponent(SECRET)}`)).status).toBe(500)
    const fault = started.lines.find(line => line.includes('cannot be followed')) ?? '{}'
    expect(JSON.parse(fault)).toMatchObject({ level: 'error', route: '/nudge/:secret' })
  })

  test('a webhook of an unknown kind is accepted and counted', async () => {
    const started = await start()
    const body = JSON.stringify({ type: 'something.new.beta' })
    const answer = await nudge(started, '/nudge', { body, headers: { 'x-nudge-secret': SECRET } })
    expect([answer.status, started.nudges[0]?.kind]).toEqual([202, 'unknown'])
    expect(await started.metrics.text()).toContain('parley_nudges_total{kind="unknown"} 1')
  })

  test('more than fifty webhooks at once are refused, and requests without the secret do not use up the allowance', async () => {
    const started = await start({ clock: virtualClock(0) })
    const knock = async (headers: Record<string, string>) =>
      (await nudge(started, '/nudge', { headers })).status
    const strangers: number[] = []
    for (let at = 0; at < 51; at += 1) strangers.push(await knock({ 'x-nudge-secret': 'wrong' }))
    const known: number[] = []
    for (let at = 0; at < 51; at += 1) known.push(await knock({ 'x-nudge-secret': SECRET }))
    expect([strangers.filter(status => status === 403).length, strangers.at(-1)]).toEqual([50, 429])
    expect([known.filter(status => status === 202).length, known.at(-1)]).toEqual([50, 429])
  })

  test('the secret of a webhook appears nowhere', async () => {
    const started = await start({
      nudge: () => {
        throw new Error('cannot be followed')
      },
    })
    const path = `/nudge/${encodeURIComponent(SECRET)}`
    const answers = [
      await nudge(started, path),
      await nudge(started, '/nudge', { headers: { 'x-nudge-secret': SECRET } }),
      await started.ask('PUT', path),
      await nudge(started, `${path}/more`),
    ]
    const told = [...answers.map(({ text, headers }) => text + JSON.stringify(headers)), ...started.lines]
    const all = told.join('') + (await started.metrics.text())
    for (const form of [SECRET, encodeURIComponent(SECRET), encodeURI(SECRET)])
      expect(all).not.toContain(form)
  })

  test('a webhook that never ends is aborted, and the server continues', async () => {
    const started = await start({ requestMs: 200 })
    const [, port] = /:(\d+)$/.exec(started.server.address ?? '') ?? []
    const socket = connect(Number(port), '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write(
      `POST /nudge HTTP/1.1\r\nhost: localhost\r\nx-nudge-secret: ${SECRET}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"a`,
    )
    socket.resume()
    await once(socket, 'close')
    expect((await started.ask('GET', '/livez')).status).toBe(200)
    expect(started.nudges).toEqual([])
  })
})

describe('the body of a webhook', () => {
  test('a body without a length and without an end is cut off at 64 KiB', async () => {
    const started = await start()
    const { socket, said } = open(started)
    const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
    socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n`)
    for (let at = 0; at < 5; at += 1) socket.write(chunk)
    expect(await said).toMatch(/^HTTP\/1\.1 413 /)
    expect(started.nudges).toEqual([])
  })

  test('a body that breaks off reaches no handler and is not an error', async () => {
    const started = await start()
    const { socket } = open(started)
    socket.write(`${HEAD}expect: 100-continue\r\ncontent-length: ${EVENT.length}\r\n\r\n`)
    await once(socket, 'data')
    socket.end(EVENT.slice(0, -1))
    await once(socket, 'close')
    expect((await nudge(started, '/nudge', { headers: { 'x-nudge-secret': SECRET } })).status).toBe(202)
    expect(started.nudges).toHaveLength(1)
    expect(started.lines.filter(line => !line.includes('"level":"info"'))).toEqual([])
  })

  test('a body with a wrong secret is not waited for', async () => {
    const { socket, said } = open(await start())
    socket.write(`${HEAD.replace(SECRET, 'wrong')}content-length: 60000\r\n\r\n{`)
    expect(await said).toMatch(/^HTTP\/1\.1 403 /)
  })

  test.each(['application/json; charset=utf-8', 'application/cloudevents+json'])(
    'a body of the type %s is accepted',
    async type => {
      const started = await start()
      const headers = { 'content-type': type, 'x-nudge-secret': SECRET }
      expect((await nudge(started, '/nudge', { headers })).status).toBe(202)
    },
  )

  test.each(['application/jsonp', 'application/json-seq', 'text/json'])(
    'a body of the type %s is refused',
    async type => {
      const started = await start()
      const headers = { 'content-type': type, 'x-nudge-secret': SECRET }
      expect((await nudge(started, '/nudge', { headers })).status).toBe(415)
    },
  )
})

test('the allowance grows by ten webhooks a second', async () => {
  const clock = virtualClock(0)
  const started = await start({ clock })
  const taken = async (times: number) => {
    for (let at = 0; at < times; at += 1)
      await nudge(started, '/nudge', { headers: { 'x-nudge-secret': SECRET } })
    return started.nudges.length
  }
  expect(await taken(60)).toBe(50)
  await clock.advance(1_000)
  expect(await taken(15)).toBe(60)
  await clock.advance(3_600_000)
  expect(await taken(60)).toBe(110)
})

test.each(['%'.repeat(200), `${'a/'.repeat(99)}?#`])(
  'the longest secret works in the path: %s',
  async secret => {
    const started = await start({ nudgeSecret: secret })
    expect((await nudge(started, `/nudge/${encodeURIComponent(secret)}`)).status).toBe(202)
  },
)

test('a secret of any characters works in the header and in the path, and no similar one does', async () => {
  const secrets = fc.stringMatching(/^[\x21-\x7e]{16,200}$/)
  await fc.assert(
    fc.asyncProperty(secrets, async secret => {
      const started = await start({ nudgeSecret: secret })
      const statusOf = async (given: string) => [
        (await nudge(started, '/nudge', { headers: { 'x-nudge-secret': given } })).status,
        (await nudge(started, `/nudge/${encodeURIComponent(given)}`)).status,
      ]
      expect(await statusOf(secret)).toEqual([202, 202])
      expect(await statusOf(secret.slice(1))).toEqual([403, 403])
      expect(await statusOf(`${secret}x`)).toEqual([403, 403])
    }),
    { numRuns: runs(25) },
  )
})

describe('clients that do not read', () => {
  const ASK = 'GET /status HTTP/1.1\r\nhost: localhost\r\n\r\n'
  /** More than the buffers of a connection hold. */
  const LARGE = { text: 'x'.repeat(16 * 1024 * 1024) }

  /** Resolves when the server has closed the connection. A socket that does not read notices it only when it writes. */
  async function closedBetween({ socket, said }: ReturnType<typeof open>, text: string, everyMs: number) {
    const writing = setInterval(() => void socket.write(text), everyMs)
    const received = await said
    clearInterval(writing)
    return received
  }

  test('a connection that asks again before it has read its answer is closed, and the others are answered', async () => {
    const started = await start({ status: () => LARGE })
    const sockets = Array.from({ length: 20 }, () => open(started))
    for (const { socket } of sockets) socket.pause().write(ASK.repeat(3000))
    expect((await started.ask('GET', '/livez')).status).toBe(200)
    await Promise.all(sockets.map(socket => closedBetween(socket, ASK, 20)))
  })

  test('a connection that does not read its answer is closed', async () => {
    const started = await start({ status: () => LARGE, requestMs: 300 })
    const opened = open(started)
    opened.socket.write(ASK)
    await once(opened.socket, 'data')
    opened.socket.pause()
    expect((await closedBetween(opened, ' ', 1000)).length).toBeLessThan(LARGE.text.length)
  })

  test('a connection that reads slowly has its whole answer', async () => {
    const started = await start({ status: () => LARGE, requestMs: 2000 })
    const { socket, said } = open(started)
    socket.on('data', () => {
      socket.pause()
      setTimeout(() => socket.resume(), 10)
    })
    socket.write(ASK.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'))
    expect((await said).length).toBeGreaterThan(LARGE.text.length)
  })

  test('a connection beyond the hundredth takes the place of the one that was silent longest', async () => {
    const started = await start()
    const sockets: ReturnType<typeof open>[] = []
    for (let count = 0; count < 100; count++) {
      const opened = open(started)
      sockets.push(opened)
      await once(opened.socket, 'connect')
    }
    const [first, second] = sockets
    first?.socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n')
    if (first) await once(first.socket, 'data')
    expect((await started.ask('GET', '/livez')).status).toBe(200)
    expect(await second?.said).toBe('')
    expect(sockets.filter(({ socket }) => socket.closed)).toHaveLength(1)
  })
})

test('more than fifty requests without the token are refused as too many, and the token still opens the page', async () => {
  const started = await start({ token: TOKEN, clock: virtualClock(0) })
  const statuses: number[] = []
  for (let count = 0; count < 51; count++) statuses.push((await started.ask('GET', '/')).status)
  expect(new Set(statuses.slice(0, 50))).toEqual(new Set([401]))
  expect(statuses.at(-1)).toBe(429)
  const headers = { authorization: `Bearer ${TOKEN}` }
  expect((await started.ask('GET', '/', { headers })).status).toBe(200)
})

test('the page and the status are made at most once a second', async () => {
  const clock = virtualClock(0)
  let readings = 0
  const started = await start({
    clock,
    status: () => ({ reading: ++readings }),
    page: async () => ({ status: 200, html: `page ${++readings}` }),
  })
  const read = async () => [await started.ask('GET', '/status'), await started.ask('GET', '/')]
  const [first, again] = [await read(), await read()]
  expect(again.map(({ text }) => text)).toEqual(first.map(({ text }) => text))
  expect(readings).toBe(2)
  await clock.advance(1000)
  await read()
  expect(readings).toBe(4)
})

describe('the address of the status server', () => {
  test.each([
    ['EADDRNOTAVAIL', { at: 'port', host: '192.0.2.1', port: 0 }],
    ['ENOENT', { at: 'socket', path: freePath('nowhere/status.sock') }],
    ['ENOTDIR', { at: 'socket', path: '/dev/null/status.sock' }],
    ['ENAMETOOLONG', { at: 'socket', path: freePath('x'.repeat(120)) }],
  ] as const)('an unavailable address (%s) is a warning that says what to do', async (code, listen) => {
    const { server, lines } = await start({ listen, token: TOKEN })
    expect(server.address).toBe(undefined)
    expect(lines.map(line => JSON.parse(line))).toEqual([
      expect.objectContaining({ level: 'warn', code, setting: 'http.listen', reason: expect.any(String) }),
    ])
    expect(lines.join('')).not.toContain('set another address in http.listen"')
    await server.close()
  })

  test('beyond loopback, the server does not run without a token, and the log says what to set', async () => {
    const { server, lines } = await start({ listen: { at: 'port', host: '0.0.0.0', port: 0 } })
    expect(server.address).toBeUndefined()
    expect(lines.map(line => JSON.parse(line))).toEqual([
      expect.objectContaining({ level: 'warn', setting: 'http.token', address: '0.0.0.0:0' }),
    ])
  })

  test('beyond loopback, any host is answered that sends the token', async () => {
    const { server, lines } = await start({ listen: { at: 'port', host: '0.0.0.0', port: 0 }, token: TOKEN })
    const address = server.address?.replace('0.0.0.0', '127.0.0.1') ?? ''
    const host = 'parley.example'
    const headers = { host, authorization: `Bearer ${TOKEN}` }
    expect((await askAt(address, 'GET', '/status', { headers })).status).toBe(200)
    expect((await askAt(address, 'GET', '/status', { headers: { host } })).status).toBe(401)
    expect(lines.join('')).not.toContain(TOKEN)
  })

  test.each([
    ['Bearer', `Bearer ${TOKEN}`, 200],
    ['Basic, with any user name', `Basic ${base64(`anyone:${TOKEN}`)}`, 200],
    ['Basic, without a user name', `basic ${base64(`:${TOKEN}`)}`, 200],
    ['a wrong token', 'Bearer not-the-token-at-all', 401],
    ['the token as the user name', `Basic ${base64(`${TOKEN}:`)}`, 401],
    ['no scheme', TOKEN, 401],
    ['nothing', undefined, 401],
  ])('the token is asked for on loopback too: %s', async (_, authorization, status) => {
    const { ask } = await start({ token: TOKEN })
    const headers = authorization === undefined ? {} : { authorization }
    for (const path of ['/', '/style.css', '/live.js', '/status', '/metrics', '/unknown']) {
      const answer = await ask('GET', path, { headers })
      expect(answer.status).toBe(path === '/unknown' && status === 200 ? 404 : status)
      if (status === 401) expect(answer.headers['www-authenticate']).toMatch(/^Basic /)
    }
  })

  test('probes need no token, and webhooks need their own secret instead', async () => {
    const { ask } = await start({ token: TOKEN })
    expect((await ask('GET', '/livez')).status).toBe(200)
    expect((await ask('GET', '/readyz?verbose')).status).toBe(200)
    const json = { 'content-type': 'application/json' }
    const nudge = (secret: string) =>
      ask('POST', '/nudge', { headers: { ...json, 'x-nudge-secret': secret }, body: '{}' })
    expect((await nudge(SECRET)).status).toBe(202)
    expect((await nudge(TOKEN)).status).toBe(403)
  })

  test('on localhost, a page of another host name is refused', async () => {
    const { server, ask, lines } = await start({ listen: { at: 'port', host: 'localhost', port: 0 } })
    expect(server.address).toMatch(/^(127\.0\.0\.1|\[::1\]):\d+$/)
    expect((await ask('GET', '/status', { headers: { host: 'evil.example' } })).status).toBe(403)
    expect(lines.join('')).not.toContain('warn')
  })

  test('a taken port is a warning that says what to do', async () => {
    const first = await start()
    const port = Number(/\d+$/.exec(first.server.address ?? '')?.[0])
    const second = await start({ listen: { at: 'port', host: '127.0.0.1', port } })
    expect(second.server.address).toBe(undefined)
    const warning = JSON.parse(second.lines.find(line => line.includes('EADDRINUSE')) ?? '{}')
    expect(warning).toMatchObject({ level: 'warn', setting: 'http.listen', address: `127.0.0.1:${port}` })
    expect(warning.reason).toContain('another process listens on this address')
  })

  test('with the address off, the server does not listen', async () => {
    const { server, lines } = await start({ listen: { at: 'off' } })
    expect([server.address, lines]).toEqual([undefined, []])
  })

  test('a socket is accessible to its owner and group, whatever its name, and is removed with the server', async () => {
    const path = freePath('status.sock')
    const { server } = await start({ listen: { at: 'socket', path } })
    expect(server.address).toBe(`unix:${path}`)
    expect(statSync(path).mode & 0o777).toBe(0o660)
    expect((await askAt(`unix:${path}`, 'GET', '/livez', { headers: { host: 'parley' } })).status).toBe(200)
    await server.close()
    expect(existsSync(path)).toBe(false)
  })

  test('a socket of a dead process is replaced', async () => {
    const [path, left] = [freePath('status.sock'), freePath('left.sock')]
    const dead = createServer().listen(path)
    await once(dead, 'listening')
    // A second name of the socket stays after the close, as the only name does after SIGKILL.
    linkSync(path, left)
    dead.close()
    await once(dead, 'close')
    const { server } = await start({ listen: { at: 'socket', path: left } })
    expect(server.address).toBe(`unix:${left}`)
    expect((await askAt(`unix:${left}`, 'GET', '/livez')).status).toBe(200)
  })

  test('a socket on which another process answers stays its own', async () => {
    const path = freePath('status.sock')
    const first = await start({ listen: { at: 'socket', path } })
    const second = await start({ listen: { at: 'socket', path } })
    expect(second.server.address).toBe(undefined)
    expect(second.lines.join('')).toContain('EADDRINUSE')
    expect((await askAt(first.server.address ?? '', 'GET', '/livez')).status).toBe(200)
  })

  test('a file that is not a socket is not changed', async () => {
    const path = freePath('notes.txt')
    writeFileSync(path, 'mine')
    const { server, lines } = await start({ listen: { at: 'socket', path } })
    expect([server.address, readFileSync(path, 'utf8')]).toEqual([undefined, 'mine'])
    expect(lines.join('')).toContain('the path is taken by a file that is not a socket')
  })

  test('closing ends the open connections', async () => {
    const { server } = await start()
    const [, port] = /:(\d+)$/.exec(server.address ?? '') ?? []
    const socket = connect(Number(port), '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
    socket.resume()
    await Promise.all([once(socket, 'close'), server.close()])
    expect(socket.destroyed).toBe(true)
  })
})
