import { describe, expect, test } from 'vitest'
import { ResourceError, RetryError, StopError } from '../../src/base/errors.ts'
import type { LogFields } from '../../src/base/log.ts'
import { createFailureLog } from '../../src/engine/context/counts-and-failures.ts'
import { handlerError, withRequest } from '../../src/engine/requests/outcome.ts'

describe('the error of a request', () => {
  const request = {
    resource: 'messages',
    route: '/v2/messages/{id}',
    path: '/v2/messages/4711',
    query: { ids: 'somebody@example.com' },
  }

  test.each([ResourceError, RetryError])(
    'the error names method and path, and no part of the query (%o)',
    Kind => {
      const error = withRequest(new Kind('The API answers 500', { code: 'server', hint: 'Wait.' }), request)
      expect(error).toBeInstanceOf(Kind)
      expect(error).toMatchObject({
        message: 'GET /v2/messages/4711: The API answers 500',
        code: 'server',
        hint: 'Wait.',
      })
    },
  )

  test('an error that ends the run is unchanged', () => {
    const error = new StopError('The disk is full', { code: 'x', exitStatus: 73 })
    expect(withRequest(error, request)).toBe(error)
  })

  test('the error shows only a part of an id of any length', () => {
    const error = withRequest(new ResourceError('x', { code: 'x' }), {
      ...request,
      path: `/${'y'.repeat(3000)}`,
    })
    expect(error.message.length).toBeLessThan(200)
  })

  test('an error thrown by a handler fails its resource, and is its cause', () => {
    const thrown = new RangeError('Maximum call stack size exceeded')
    const fault = handlerError(thrown, { feed: 'messages.list' })
    expect(fault).toBeInstanceOf(ResourceError)
    expect(fault).toMatchObject({
      code: 'fault',
      cause: thrown,
      message: expect.stringContaining('RangeError'),
    })
  })
})

describe('the log of failures', () => {
  function logged() {
    const lines: (readonly [string, LogFields | undefined])[] = []
    const note = (message: string, fields?: LogFields) => void lines.push([message, fields])
    return { lines, failures: createFailureLog({ error: note, info: note }) }
  }
  const list = { resource: 'messages', id: 'messages.list' } as const
  const error = (code: string) => new ResourceError('why', { code })

  test('the first, tenth and hundredth equal failure is logged', () => {
    const { lines, failures } = logged()
    for (let time = 0; time < 150; time += 1) failures.failed(list, error('server'))
    failures.recovered('messages')
    failures.recovered('messages')
    expect(lines.map(([message, fields]) => [message, fields?.failures])).toEqual([
      ['Failed to read resource', 1],
      ['Failed to read resource', 10],
      ['Failed to read resource', 100],
    ])
  })

  test('the line for held-back deletions says what is held back, and does not say that the resource cannot be read', () => {
    const { lines, failures } = logged()
    const held = {
      begins: 'Deletions are held back',
      ends: 'No longer',
      fields: { table: 'members', rows: 40 },
    }
    for (let time = 0; time < 2; time += 1) failures.failed(list, error('mass-deletion'), held)
    failures.failed(list, error('server'))
    failures.recovered('messages')
    expect(lines).toEqual([
      [
        'Deletions are held back',
        { resource: 'messages', code: 'mass-deletion', table: 'members', rows: 40, failures: 1 },
      ],
      [
        'Failed to read resource',
        { resource: 'messages', code: 'server', reason: 'messages.list: why', failures: 1 },
      ],
      ['No longer', { resource: 'messages', failures: 2 }],
    ])
  })

  test('failures of another kind, feed or series are logged separately', () => {
    const { lines, failures } = logged()
    failures.failed(list, error('server'))
    failures.failed(list, error('timeout'))
    failures.failed({ ...list, id: 'messages.probe' }, error('server'))
    failures.recovered('messages')
    failures.failed(list, error('server'))
    expect(lines.filter(([message]) => message === 'Failed to read resource')).toHaveLength(4)
  })
})
