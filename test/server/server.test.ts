import { once } from 'node:events'
import { existsSync, linkSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { virtualClock } from '../api/virtual-clock.ts'
import { type AskOptions, askAt, freePath, SECRET, type Started, start } from './started.ts'

const JSON_BODY = { 'content-type': 'application/json' }
const EVENT = JSON.stringify({ type: 'meeting.completed.beta', data: { meeting_id: 'm1' } })

const nudge = ({ ask }: Started, path: string, options: AskOptions = {}) =>
  ask('POST', path, { body: EVENT, ...options, headers: { ...JSON_BODY, ...options.headers } })

describe('what the status server tells', () => {
  test('is well while it is', async () => {
    const { ask } = await start()
    expect(await ask('GET', '/livez')).toMatchObject({ status: 200, text: 'ok\n' })
    expect(await ask('GET', '/readyz')).toMatchObject({ status: 200, text: 'ok\n' })
  })

  test('says why when it is not', async () => {
    const { ask } = await start({ live: () => 'stuck', ready: () => 'the disk is full' })
    expect(await ask('GET', '/livez')).toMatchObject({ status: 503, text: 'stuck\n' })
    expect(await ask('GET', '/readyz')).toMatchObject({ status: 503, text: 'the disk is full\n' })
  })

  test('is the status as it is given', async () => {
    const { ask } = await start({ status: () => ({ resources: [{ resource: 'members' }] }) })
    const { status, text, headers } = await ask('GET', '/status')
    expect([status, JSON.parse(text), headers['cache-control']]).toEqual([
      200,
      { resources: [{ resource: 'members' }] },
      'no-store',
    ])
  })

  test('is a fault without details when it cannot be told, and the log says which', async () => {
    const { ask, lines } = await start({
      status: () => {
        throw new Error('secret details')
      },
    })
    const { status, text } = await ask('GET', '/status')
    expect([status, JSON.parse(text)]).toEqual([
      500,
      { error: 'The daemon could not answer; its log says why' },
    ])
    expect(lines.join('')).toContain('secret details')
  })

  test('can be asked for without its body', async () => {
    const { ask } = await start()
    expect(await ask('HEAD', '/readyz')).toMatchObject({ status: 200, text: '' })
  })
})

describe('what the status server refuses', () => {
  test.each([
    ['GET', '/', 404],
    ['GET', '/livez/x', 404],
    ['POST', '/status', 405],
    ['DELETE', '/metrics', 405],
    ['GET', '/nudge', 405],
    ['GET', `/nudge/${encodeURIComponent(SECRET)}`, 405],
    ['GET', '/%zz', 400],
  ])('%s %s is %i', async (method, path, status) => {
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
  ])('a page that calls it %s gets %i', async (host, status) => {
    const { ask } = await start()
    expect((await ask('GET', '/status', { headers: { host } })).status).toBe(status)
  })
})

describe('a webhook', () => {
  test('is taken with the secret in the header or in the path', async () => {
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
      'a wrong header beside the right path',
      `/nudge/${encodeURIComponent(SECRET)}`,
      { 'x-nudge-secret': 'wrong' },
    ],
  ])('with %s is refused and reaches nobody', async (_, path, headers) => {
    const started = await start()
    const answer = await nudge(started, path, { headers })
    expect([answer.status, started.nudges]).toEqual([403, []])
  })

  test('has nowhere to go where no secret is set', async () => {
    const started = await start({ nudgeSecret: undefined })
    expect((await nudge(started, '/nudge')).status).toBe(404)
  })

  test.each([
    ['that is no JSON', '{"meeting_id":', JSON_BODY, 400],
    ['that is empty', '', JSON_BODY, 400],
    ['of another type', EVENT, { 'content-type': 'text/plain' }, 415],
    ['of more than 64 KiB', JSON.stringify({ text: 'x'.repeat(65 * 1024) }), JSON_BODY, 413],
  ])('with a body %s is refused, and nothing of it is repeated', async (_, body, headers, status) => {
    const started = await start()
    const answer = await nudge(started, '/nudge', { body, headers: { ...headers, 'x-nudge-secret': SECRET } })
    expect([answer.status, started.nudges]).toEqual([status, []])
    expect(answer.text).not.toContain('meeting_id')
    expect(started.lines.join('')).not.toContain('meeting_id')
  })

  test('of an unknown kind is taken and counted', async () => {
    const started = await start()
    const body = JSON.stringify({ type: 'something.new.beta' })
    const answer = await nudge(started, '/nudge', { body, headers: { 'x-nudge-secret': SECRET } })
    expect([answer.status, started.nudges[0]?.kind]).toEqual([202, 'unknown'])
    expect(await started.metrics.text()).toContain('parley_nudges_total{kind="unknown"} 1')
  })

  test('beyond fifty at once is too many, and strangers do not use up the allowance', async () => {
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

  test('leaves its secret nowhere', async () => {
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

  test('that never ends is given up, and the server goes on', async () => {
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

describe('where it listens', () => {
  test('a port that is taken is a warning that says what to do', async () => {
    const first = await start()
    const port = Number(/\d+$/.exec(first.server.address ?? '')?.[0])
    const second = await start({ listen: { at: 'port', host: '127.0.0.1', port } })
    expect(second.server.address).toBe(undefined)
    const warning = JSON.parse(second.lines.find(line => line.includes('EADDRINUSE')) ?? '{}')
    expect(warning).toMatchObject({ level: 'warn', setting: 'http.listen', address: `127.0.0.1:${port}` })
    expect(warning.reason).toContain('another process listens there')
  })

  test('off is nowhere', async () => {
    const { server, lines } = await start({ listen: { at: 'off' } })
    expect([server.address, lines]).toEqual([undefined, []])
  })

  test('a socket is for its owner and group, whatever name it is called by, and gone with the server', async () => {
    const path = freePath('status.sock')
    const { server } = await start({ listen: { at: 'socket', path } })
    expect(server.address).toBe(`unix:${path}`)
    expect(statSync(path).mode & 0o777).toBe(0o660)
    expect((await askAt(`unix:${path}`, 'GET', '/livez', { headers: { host: 'parley' } })).status).toBe(200)
    await server.close()
    expect(existsSync(path)).toBe(false)
  })

  test('a socket that a dead process left is replaced', async () => {
    const [path, left] = [freePath('status.sock'), freePath('left.sock')]
    const dead = createServer().listen(path)
    await once(dead, 'listening')
    // A second name for it stays when it is closed, as the only one does on SIGKILL.
    linkSync(path, left)
    dead.close()
    await once(dead, 'close')
    const { server } = await start({ listen: { at: 'socket', path: left } })
    expect(server.address).toBe(`unix:${left}`)
    expect((await askAt(`unix:${left}`, 'GET', '/livez')).status).toBe(200)
  })

  test('a socket on which somebody answers stays theirs', async () => {
    const path = freePath('status.sock')
    const first = await start({ listen: { at: 'socket', path } })
    const second = await start({ listen: { at: 'socket', path } })
    expect(second.server.address).toBe(undefined)
    expect(second.lines.join('')).toContain('EADDRINUSE')
    expect((await askAt(first.server.address ?? '', 'GET', '/livez')).status).toBe(200)
  })

  test('a file that is no socket is left alone', async () => {
    const path = freePath('notes.txt')
    writeFileSync(path, 'mine')
    const { server, lines } = await start({ listen: { at: 'socket', path } })
    expect([server.address, readFileSync(path, 'utf8')]).toEqual([undefined, 'mine'])
    expect(lines.join('')).toContain('a file that is no socket is there')
  })

  test('closing ends the connections that are open', async () => {
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
