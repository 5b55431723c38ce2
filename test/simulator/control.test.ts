import { Command } from 'commander'
import { expect, test } from 'vitest'
import { configureCommand } from '../../src/commands/base/command.ts'
import { simulateCommand } from '../../src/commands/simulate.ts'
import { startSimulator } from '../../src/simulator/server.ts'
import { TRUTH_KINDS } from '../../src/simulator/world/truth.ts'
import { SMALL, withSimulator } from './ask.ts'

const post = (url: string, path: string, body: unknown): Promise<Response> =>
  fetch(`${url}/_simulator/${path}`, { method: 'POST', body: JSON.stringify(body) })

test('the control plane is off by default', () =>
  withSimulator(SMALL, async ({ url }) => {
    expect((await fetch(`${url}/_simulator/requests`)).status).toBe(401)
  }))

test('the truth has a line of JSON with every digit for each item, and counts', () =>
  withSimulator({ ...SMALL, control: true }, async ({ url, world }) => {
    const counts = await (await fetch(`${url}/_simulator/truth`)).json()
    for (const kind of TRUTH_KINDS) {
      const text = await (await fetch(`${url}/_simulator/truth/${kind}`)).text()
      const lines = text.split('\n').filter(line => line !== '')
      expect(lines).toEqual([...world.truth().lines(kind)])
      expect(counts).toHaveProperty(kind, lines.length)
    }
    expect((await fetch(`${url}/_simulator/truth/nothing`)).status).toBe(404)
  }))

test('requests are counted until the counts are cleared, and control requests are not counted', () =>
  withSimulator({ ...SMALL, control: true }, async ({ url }, ask) => {
    const { text } = await ask('/v1/members')
    const requests = async () => (await fetch(`${url}/_simulator/requests`)).json()
    expect(await requests()).toMatchObject({
      total: 1,
      bytes: Buffer.byteLength(text),
      counts: [{ route: '/v1/members', status: 200, count: 1 }],
    })
    await fetch(`${url}/_simulator/requests`, { method: 'DELETE' })
    expect(await requests()).toMatchObject({ total: 0, bytes: 0 })
  }))

test('changes, faults, limit, key and time are set over HTTP', () =>
  withSimulator({ ...SMALL, control: true }, async ({ url, requests }, ask) => {
    const changed = await post(url, 'changes', { kind: 'publish', resource: 'messages', count: 2 })
    const { ids }: { ids: string[] } = JSON.parse(await changed.text())
    expect((await ask('/v2/messages', { limit: '2' })).body.data?.map(row => row['id'])).toEqual(
      ids.reverse(),
    )
    await post(url, 'faults', [{ kind: 'status', status: 503 }])
    expect((await ask('/v1/members')).status).toBe(503)
    expect(await (await fetch(`${url}/_simulator/faults`)).json()).toEqual({ hitCounts: [1] })
    await post(url, 'faults', { kind: 'status', status: 502 })
    expect((await ask('/v1/members')).status).toBe(502)
    await post(url, 'faults', [])
    await post(url, 'limit', { kind: 'fixed-window', count: 1, windowMs: 1_000_000_000 })
    await ask('/v1/members')
    expect((await ask('/v1/members')).status).toBe(429)
    await post(url, 'limit', { kind: 'none' })
    const hour = async () => Date.parse((await ask('/v1/members')).headers.get('date') ?? '') / 3_600_000
    const before = await hour()
    await post(url, 'time', { ms: 48 * 3_600_000 })
    expect(Math.round((await hour()) - before)).toBe(48)
    await post(url, 'key', { key: 'next' })
    expect((await ask('/v1/members')).status).toBe(401)
    expect(requests.total()).toBe(8)
  }))

test('an invalid control request is a 400 with its reason', () =>
  withSimulator({ ...SMALL, control: true }, async ({ url }) => {
    const answer = await post(url, 'changes', { kind: 'edit', resource: 'messages', id: 'nobody' })
    expect(answer.status).toBe(400)
    expect(await answer.text()).toContain('nobody')
    expect(await (await post(url, 'changes', { kind: 'edit', resource: 'emails' })).text()).toContain(
      'messages',
    )
  }))

test('a change of an unknown kind is refused and changes nothing', () =>
  withSimulator({ ...SMALL, control: true }, async ({ url, world }) => {
    const [id] = [...world.truth().items('messages')].map(row => row['id'])
    const before = [...world.truth().lines('messages'), ...world.truth().lines('crm_objects')]
    for (const target of [
      { resource: 'messages', id },
      { object: 'deal', field: 'stage_id', type: 'text' },
    ]) {
      const answer = await post(url, 'changes', { kind: 'remove', ...target })
      expect(answer.status).toBe(400)
      expect(await answer.json()).toEqual({ message: 'no change has the kind remove' })
    }
    expect([...world.truth().lines('messages'), ...world.truth().lines('crm_objects')]).toEqual(before)
  }))

function outputs() {
  const written = { stdout: '', stderr: '' }
  const sink = (name: 'stdout' | 'stderr') => ({
    write: (text: string) => {
      written[name] += text
    },
  })
  return { written, stdout: sink('stdout'), stderr: sink('stderr') }
}

type Options = Parameters<typeof simulateCommand.run>[1]['options']

function optionsFor(...argv: string[]): Options {
  return configureCommand(new Command('simulate'), simulateCommand)
    .parse(argv, { from: 'user' })
    .opts<Options>()
}

test('the command prints its address, serves, and ends with 0 when it is stopped', async () => {
  const stop = new AbortController()
  const { written, stdout, stderr } = outputs()
  const options = optionsFor('--port', '0', '--messages', '50', '--json', '--key', 'a key')
  const running = simulateCommand.run(
    {
      env: {},
      cwd: '.',
      stdin: process.stdin,
      stdout,
      stderr,
      signal: stop.signal,
      onSignal: () => undefined,
      version: 'test',
    },
    { args: [], flags: {}, options },
  )
  while (written.stdout === '') await new Promise(resolve => setImmediate(resolve))
  const { url, key, workspace_id: workspace } = JSON.parse(written.stdout)
  const answer = await fetch(`${url}/v1/members`, {
    headers: { 'x-api-key': key, 'x-workspace-id': workspace },
  })
  expect(answer.status).toBe(200)
  stop.abort()
  expect(await running).toBe(0)
  await expect(fetch(url)).rejects.toThrow()
  expect(written.stderr).toContain('1 requests')
})

test('a taken port and an invalid history end are wrong usage', async () => {
  const taken = await startSimulator(SMALL)
  const context = {
    env: {},
    cwd: '.',
    stdin: process.stdin,
    ...outputs(),
    signal: AbortSignal.abort(),
    onSignal: () => undefined,
    version: 'test',
  }
  const attempt = (...argv: string[]) =>
    simulateCommand.run(context, { args: [], flags: {}, options: optionsFor(...argv) })
  await expect(attempt('--port', new URL(taken.url).port)).rejects.toMatchObject({ exitStatus: 64 })
  await expect(attempt('--port', '0', '--now', 'yesterday')).rejects.toThrow('yesterday')
  await taken.close()
})

test('a living workspace has the real clock, so another instant is refused', async () => {
  const context = {
    ...{ env: {}, cwd: '.', stdin: process.stdin, ...outputs(), version: 'test' },
    ...{ signal: AbortSignal.abort(), onSignal: () => undefined },
  }
  const attempt = (...argv: string[]) =>
    simulateCommand.run(context, { args: [], flags: {}, options: optionsFor('--living', ...argv) })
  await expect(attempt('--now', '2026-01-01T00:00:00Z')).rejects.toMatchObject({
    exitStatus: 64,
    message: '--now is 2026-01-01T00:00:00Z with --living: expected real, which is its default there',
  })
  expect(await attempt('--port', '0', '--messages', '10', '--now', 'real')).toBe(0)
})

test('limits and faults are read from flags, and invalid ones are refused', () => {
  const options = optionsFor(
    '--limit',
    'token-bucket:5,10',
    '--fault',
    'status:0.5:503',
    '--fault',
    '{"kind":"reset"}',
  )
  expect(options).toMatchObject({
    limit: { kind: 'token-bucket', rate: 5, burst: 10 },
    fault: [
      { kind: 'status', probability: 0.5, status: 503 },
      { kind: 'reset', probability: 1 },
    ],
  })
  for (const bad of [
    ['--limit', 'fast'],
    ['--fault', 'earthquake'],
    ['--fault', 'reset:2'],
    ['--fault', 'status:1:99'],
    ['--fault', 'status:1:600'],
    ['--fault', '{"kind":"status","status":101}'],
    ['--port', 'x'],
    ['--port', '65536'],
  ]) {
    const command = configureCommand(new Command('simulate'), simulateCommand)
      .exitOverride()
      .configureOutput({ writeErr: () => undefined })
    expect(() => command.parse(bad, { from: 'user' })).toThrow()
  }
})
