import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { payloadOf } from '../../src/hooks/call.ts'
import { startConnectProxy } from '../support/connect-proxy.ts'
import { until } from '../support/until.ts'
import { receiver, TOKEN } from './receiver.ts'
import { DISK, watchTrial } from './watch-trial.ts'

const MINUTE = 60_000

test('a webhook gets the fields of the problem and a sentence, and the log says that it was called', async () => {
  const { url, calls } = await receiver()
  const { look, lines } = await watchTrial({ onProblem: url })
  await look([DISK])
  await until(
    () => calls.length,
    count => count > 0,
  )
  expect(calls).toEqual([
    {
      method: 'POST',
      url: `/services/${TOKEN}`,
      type: 'application/json',
      payload: {
        event: 'problem',
        id: 'daemon:database-full',
        what: 'The daemon cannot use the database',
        detail: 'The disk is full',
        since: '2026-03-04T11:59:00.000Z',
        lasted_seconds: 90,
        todo: 'Remove the cause.',
        workspace: 'acme',
        text: 'parley, workspace acme: The daemon cannot use the database (since 11:59:00 UTC). The disk is full. Remove the cause.',
      },
    },
  ])
  await until(
    () => lines.length,
    count => count === 1,
  )
  expect(lines).toMatchObject([
    { level: 'info', msg: 'Called a hook', setting: 'hooks.on_problem', problem: DISK.id },
  ])
})

test('the seconds of a recovery are those of its text', () => {
  const problem = { ...DISK, since: '2026-03-04T11:59:00.000Z' }
  const call = { event: 'recovered', problem, workspaceId: 'acme', lastedMs: 97_600 } as const
  const { lasted_seconds, text } = payloadOf(call)
  expect({ lasted_seconds, text }).toEqual({
    lasted_seconds: 97,
    text: expect.stringContaining('recovered after 1 min 37 s'),
  })
})

test('a webhook that answers 500 is called again by a look after a minute, and not after its first 2xx', async () => {
  const { url, calls } = await receiver((response, number) =>
    response.writeHead(number === 1 ? 500 : 204).end(number === 1 ? 'private text of the server' : ''),
  )
  const { look, lines, clock, notes } = await watchTrial({ onProblem: url })
  await look([DISK])
  await until(
    () => lines.length,
    count => count === 1,
  )
  expect(lines).toEqual([
    {
      level: 'warn',
      time: expect.any(String),
      msg: 'A hook failed; it is called again',
      setting: 'hooks.on_problem',
      problem: DISK.id,
      reason: 'HTTP status 500',
      attempt: 1,
      wait_ms: 48_000,
    },
  ])
  await clock.advance(48_000)
  expect(calls).toHaveLength(1)
  await clock.advance(15_000)
  await until(notes, count => count === 1)
  await clock.advance(60 * MINUTE)
  expect(calls).toHaveLength(2)
})

test('a redirect of a webhook is a failure and is not followed', async () => {
  const other = await receiver()
  const { url, calls } = await receiver(response => response.writeHead(307, { location: other.url }).end())
  const { look, lines } = await watchTrial({ onProblem: url })
  await look([DISK])
  await until(
    () => lines.length,
    count => count === 1,
  )
  expect(lines).toMatchObject([{ reason: 'HTTP status 307' }])
  expect([calls.length, other.calls.length]).toEqual([1, 0])
})

test('a webhook that does not answer fails after ten seconds', async () => {
  const { url, calls } = await receiver(() => undefined)
  const { look, lines, clock } = await watchTrial({ onProblem: url })
  await look([DISK])
  await until(
    () => calls.length,
    count => count === 1,
  )
  await clock.advance(9999)
  expect(lines).toEqual([])
  await clock.advance(1)
  await until(
    () => lines.length,
    count => count === 1,
  )
  expect(lines).toMatchObject([{ reason: 'no answer within 10 s' }])
})

test('a webhook that fails five times is given up, and the log has the code of the error but not the address', async () => {
  const closed = createServer()
  await new Promise<void>(resolve => closed.listen(0, '127.0.0.1', resolve))
  const { port } = closed.address() as { port: number }
  await new Promise<void>(resolve => closed.close(() => resolve()))
  const { look, lines, clock } = await watchTrial({ onProblem: `http://127.0.0.1:${port}/${TOKEN}` })
  await look([DISK])
  for (let failed = 1; failed <= 5; failed += 1) {
    await until(
      () => lines.length,
      count => count === failed,
    )
    await clock.advance(15_000 + Number(lines.at(-1)?.['wait_ms'] ?? 60 * MINUTE))
  }
  expect(lines.map(({ reason, attempt, wait_ms }) => [reason, attempt, wait_ms])).toEqual([
    ['ECONNREFUSED', 1, 48_000],
    ['ECONNREFUSED', 2, 96_000],
    ['ECONNREFUSED', 3, 192_000],
    ['ECONNREFUSED', 4, 384_000],
    ['ECONNREFUSED', 5, undefined],
  ])
  expect(lines.at(-1)).toMatchObject({ msg: 'A hook failed; this call is given up' })
  expect(JSON.stringify(lines)).not.toMatch(new RegExp(`${TOKEN}|${port}`))
})

test('a webhook that the proxy does not reach fails with the reason of the proxy, without the address of the webhook', async () => {
  const proxy = await startConnectProxy({ to: 1, answers: 403 })
  const rule = { url: proxy.url, source: 'HTTPS_PROXY' }
  const onProblem = `https://hooks.example.test/${TOKEN}`
  const { look, lines } = await watchTrial({ onProblem, proxies: { https: rule } })
  await look([DISK])
  await until(
    () => lines.length,
    count => count === 1,
  )
  expect(proxy.asked).toMatchObject([{ target: 'hooks.example.test:443' }])
  const reason = `the proxy ${proxy.url} (HTTPS_PROXY) refuses to connect (HTTP 403)`
  expect(lines).toMatchObject([{ reason }])
  expect(JSON.stringify(lines)).not.toContain('hooks.example')
})
