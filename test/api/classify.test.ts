import { describe, expect, it } from 'vitest'
import { classifyAnswer, classifyFailure, type HttpAnswer } from '../../src/api/classify.ts'
import { ProxyError } from '../../src/base/proxies.ts'

const NOW = Date.UTC(2025, 5, 1, 12)
const DATE = 'Sun, 01 Jun 2025 11:00:00 GMT'
const SECRET = 'key-0123456789'

function classify(status: number, text: string, headers: HttpAnswer['headers'] = {}) {
  return classifyAnswer({ status, headers, text, bytes: text.length }, { now: NOW, secret: SECRET })
}

const v1Error = JSON.stringify({ statusCode: 404, message: 'Playbook result not found', error: 'Not Found' })
const v2Error = JSON.stringify({ error: { code: 'invalid', message: 'limit must not exceed 100' } })

describe('the body of an answer', () => {
  it('an answer has its value, its size and the time of the server', () => {
    expect(classify(200, '{"data":[1]}', { date: DATE })).toEqual({
      kind: 'answer',
      value: { data: [1] },
      bytes: 12,
      serverTime: NOW - 3_600_000,
    })
  })

  it('an answer of any content type is read, if it is JSON', () => {
    expect(classify(200, '[]', { 'content-type': 'text/html' })).toMatchObject({ kind: 'answer', value: [] })
  })

  it.each(['', '<!doctype html><p>Sign in, Ada</p>', '{"data":[{"subject":"Hello Ada', 'null,'])(
    'an answer that is not JSON is garbled, and the error does not quote it: %j',
    text => {
      const outcome = classify(200, text, { 'content-type': 'application/json' })
      expect(outcome).toMatchObject({ kind: 'retry', cause: 'garbled', status: 200 })
      expect(JSON.stringify(outcome)).not.toContain('Ada')
    },
  )
})

it('an answer that cannot be classified is unreadable, and the error does not quote it', () => {
  const headers = new Proxy({}, { get: () => raise(new RangeError('Ada')) })
  for (const status of [200, 400, 429, 503]) {
    const outcome = classify(status, '{}', headers)
    const message = 'The answer is unreadable (RangeError)'
    expect(outcome).toEqual({ kind: 'retry', cause: 'garbled', status, message })
  }
})

function raise(error: Error): never {
  throw error
}

describe('the status of an answer', () => {
  it.each([
    [400, { kind: 'refused', status: 400 }],
    [403, { kind: 'refused', status: 403 }],
    [404, { kind: 'refused', status: 404 }],
    [410, { kind: 'refused', status: 410 }],
    [422, { kind: 'refused', status: 422 }],
    [401, { kind: 'unauthorized' }],
    [408, { kind: 'retry', cause: 'timeout', status: 408 }],
    [425, { kind: 'retry', cause: 'server', status: 425 }],
    [429, { kind: 'retry', cause: 'throttled', status: 429 }],
    [500, { kind: 'retry', cause: 'server', status: 500 }],
    [503, { kind: 'retry', cause: 'server', status: 503 }],
    [599, { kind: 'retry', cause: 'server', status: 599 }],
    [301, { kind: 'fault', code: 'redirect', status: 301 }],
    [307, { kind: 'fault', code: 'redirect', status: 307 }],
    [
      304,
      { kind: 'retry', cause: 'garbled', status: 304, message: 'Not Modified, without a request for it' },
    ],
    [204, { kind: 'retry', cause: 'garbled', status: 204 }],
  ])('the status %i means %j', (status, outcome) => {
    expect(classify(status, '')).toMatchObject(outcome)
  })
})

describe('the message of a refusal', () => {
  it.each([
    ['the v1 body', v1Error, 'Playbook result not found'],
    ['the v2 body, with its code', v2Error, 'limit must not exceed … (invalid)'],
    [
      'a list of sentences',
      '{"message":["limit is wrong","page is wrong",3]}',
      'limit is wrong; page is wrong',
    ],
    ['no JSON', '<html>secret page</html>', 'Bad Request'],
    ['JSON without one', '{"data":"words of someone"}', 'Bad Request'],
    ['null', 'null', 'Bad Request'],
    ['a message that is no text', '{"message":{"a":1}}', 'Bad Request'],
    ['several lines', '{"message":"not\\r\\n\\u001b[31mred\\u2028found"}', 'not … found'],
    ['the key', `{"message":"Invalid API key ${SECRET}"}`, 'Invalid API key …'],
    ['a shortened key', '{"message":"Invalid API key sk_live…abcd"}', 'Invalid API key …'],
    [
      'words of people',
      '{"message":"Meeting \\"Ada and the access log\\" is not visible"}',
      'Meeting … is not visible',
    ],
  ])('the message comes from %s', (_, text, message) => {
    expect(classify(400, text)).toMatchObject({ message })
  })

  it('the message is the HTTP name of the status when the body is unknown', () => {
    expect(classify(404, '{"message":"Ada"}')).toMatchObject({ message: 'Not Found' })
    expect(classify(401, '{"message":"Ada"}')).toEqual({ kind: 'unauthorized', message: 'Unauthorized' })
    expect(classify(499, '{"message":"Ada"}')).toMatchObject({ message: 'HTTP status 499' })
  })
})

describe('the wait that the API asks for', () => {
  const day = 86_400_000
  it.each<[string, number, HttpAnswer['headers'], number | undefined]>([
    ['seconds', 429, { 'retry-after': '7' }, 7000],
    ['fractions of a second', 429, { 'retry-after': '0.25' }, 250],
    [
      'a date, by the clock of the server',
      429,
      { date: DATE, 'retry-after': 'Sun, 01 Jun 2025 11:00:30 GMT' },
      30_000,
    ],
    [
      'a date, by ours where the server gives none',
      429,
      { 'retry-after': 'Sun, 01 Jun 2025 12:00:30 GMT' },
      30_000,
    ],
    ['an old form of date', 429, { date: DATE, 'retry-after': 'Sunday, 01-Jun-25 11:00:30 GMT' }, 30_000],
    ['the oldest form of date', 429, { date: DATE, 'retry-after': 'Sun Jun  1 11:00:30 2025' }, 30_000],
    ['at most a day', 429, { 'retry-after': '999999' }, day],
    [
      'nothing when it is past',
      429,
      { date: DATE, 'retry-after': 'Sun, 01 Jun 2025 10:59:00 GMT' },
      undefined,
    ],
    ['nothing when it is zero', 429, { 'retry-after': '0' }, undefined],
    ['nothing when it is negative', 429, { 'retry-after': '-5' }, undefined],
    ['nothing when it is unreadable', 429, { 'retry-after': 'soon 5' }, undefined],
    ['nothing when there is none', 429, {}, undefined],
    ['a 503 too', 503, { 'retry-after': '7' }, 7000],
    ['at most a minute with a 503', 503, { 'retry-after': '3600' }, 60_000],
    [
      'at most a minute with a 503 that names a date',
      503,
      { date: DATE, 'retry-after': 'Sun, 01 Jun 2025 15:00:00 GMT' },
      60_000,
    ],
    [
      'until the instant that stands where seconds should',
      429,
      { date: DATE, 'retry-after': String(NOW / 1000 - 3600 + 40) },
      40_000,
    ],
    [
      'nothing when that instant is past',
      429,
      { date: DATE, 'retry-after': String(NOW / 1000 - 7200) },
      undefined,
    ],
    ['seconds until the limit starts again', 429, { 'ratelimit-reset': '12' }, 12_000],
    ['an instant in seconds', 429, { date: DATE, 'x-ratelimit-reset': String(NOW / 1000 - 3600 + 9) }, 9000],
    ['an instant in milliseconds', 429, { date: DATE, 'x-ratelimit-reset': String(NOW - 3_600_000 + 9) }, 9],
    ['Retry-After before any other', 429, { 'retry-after': '3', 'ratelimit-reset': '12' }, 3000],
    ['another where Retry-After is unreadable', 429, { 'retry-after': '?', 'ratelimit-reset': '12' }, 12_000],
    ['no reset of a 503', 503, { 'ratelimit-reset': '12' }, undefined],
    ['the first of repeated headers', 429, { 'retry-after': ['4', '9'] }, 4000],
  ])('the API asks for %s', (_, status, headers, waitMs) => {
    const outcome = classify(status, '', headers)
    expect(outcome.kind === 'retry' ? outcome.waitMs : 'no retry').toBe(waitMs)
  })
})

describe('a failed attempt', () => {
  it.each([
    ['ECONNREFUSED', 'unreachable', 'connection refused'],
    ['ENOTFOUND', 'unreachable', 'host name'],
    ['EHOSTUNREACH', 'unreachable', 'no route'],
    ['UND_ERR_CONNECT_TIMEOUT', 'unreachable', 'timed out'],
    ['CERT_HAS_EXPIRED', 'unreachable', 'its certificate has expired (CERT_HAS_EXPIRED)'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'unreachable', 'NODE_EXTRA_CA_CERTS'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'unreachable', 'does not seem to speak TLS'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'unreachable', 'its certificate is for another host'],
    ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'unreachable', 'TLS failed'],
    ['UND_ERR_HEADERS_TIMEOUT', 'timeout', 'start to answer'],
    ['UND_ERR_BODY_TIMEOUT', 'timeout', 'stalled'],
    ['ECONNRESET', 'transport', 'reset'],
    ['UND_ERR_SOCKET', 'transport', 'closed'],
    ['HPE_INVALID_CONSTANT', 'garbled', 'HTTP'],
    ['Z_DATA_ERROR', 'garbled', 'damaged'],
    ['ESOMETHINGNEW', 'transport', 'ESOMETHINGNEW'],
  ])('an attempt with %s is %s', (code, cause, words) => {
    const error = Object.assign(new Error(`x-api-key: ${SECRET}`), { code })
    for (const thrown of [error, new Error('fetch', { cause: error }), new AggregateError([error])]) {
      const outcome = classifyFailure(thrown)
      expect(outcome).toMatchObject({ kind: 'retry', cause, message: expect.stringContaining(words) })
      expect(JSON.stringify(outcome)).not.toContain(SECRET)
    }
  })

  it.each([undefined, 'text', new Error(SECRET), { code: 5 }, { code: `x ${SECRET}` }])(
    'a failure without a known code is a transport failure',
    thrown => {
      expect(classifyFailure(thrown)).toEqual({
        kind: 'retry',
        cause: 'transport',
        message: 'The request failed (unknown)',
      })
    },
  )

  it('a failure in the TLS handshake is reported as such, not as a reset', () => {
    const message = 'Client network socket disconnected before secure TLS connection was established'
    const error = Object.assign(new Error(message), { code: 'ECONNRESET' })
    expect(classifyFailure(error)).toMatchObject({
      cause: 'unreachable',
      message: expect.stringContaining('try http://'),
    })
  })

  it('a proxy that does not connect is named as the reason', () => {
    const error = new ProxyError('the proxy http://127.0.0.1:3128 (api.proxy) cannot connect (HTTP 502)')
    expect(classifyFailure(error)).toEqual({
      kind: 'retry',
      cause: 'unreachable',
      message: `The API cannot be reached: ${error.message}`,
    })
  })

  it('a request that HTTP cannot carry is a defect', () => {
    const error = Object.assign(new Error('invalid x-api-key header'), { code: 'UND_ERR_INVALID_ARG' })
    expect(classifyFailure(error)).toMatchObject({ kind: 'fault', code: 'bad-request-setup' })
  })
})
