import { expect, test } from 'vitest'
import { EXIT_STATUS, StopError } from '../../src/base/errors.ts'
import { createLog, LOG_KEYS, type LogFields, type LogOptions } from '../../src/base/log.ts'

async function logging(options: Partial<LogOptions> = {}) {
  const lines: string[] = []
  const log = await createLog({ level: 'info', stream: { write: line => lines.push(line) }, ...options })
  return { log, lines, objects: (): Record<string, unknown>[] => lines.map(line => JSON.parse(line)) }
}

test('a line is JSON with the level as a word, the time as an instant, and the fields', async () => {
  const { log, objects } = await logging()
  log.info('Read a page', { resource: 'members', rows: 30 })
  expect(objects()).toEqual([
    {
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/),
      resource: 'members',
      rows: 30,
      msg: 'Read a page',
    },
  ])
})

test('lines below the level are not written', async () => {
  const { log, lines } = await logging({ level: 'warn' })
  log.info('Quiet')
  log.warn('Loud')
  expect(lines).toHaveLength(1)
})

test('a terminal gets a readable line at once', async () => {
  const { log, lines } = await logging({ pretty: true })
  log.warn('Waiting', { wait_ms: 500 })
  expect(lines.join('')).toMatch(/^\[\d{2}:\d{2}:\d{2}\] WARN: Waiting \{"wait_ms":500\}\n$/)
})

test('a key, header or text that is passed by mistake is redacted, at the top level and one level down', async () => {
  const { log, lines, objects } = await logging()
  const secrets = {
    apiKey: 'hush',
    api_key: 'hush',
    key: 'hush',
    'x-api-key': 'hush',
    'X-Api-Key': 'hush',
    authorization: 'hush',
    headers: { 'X-Api-Key': 'hush' },
    text: 'hush',
    subject: 'hush',
    body: 'hush',
  }
  // The types keep such names out; what comes from JSON gets past them.
  const pastTypes = (value: unknown): LogFields => JSON.parse(JSON.stringify(value))
  log.info('Mistake', pastTypes(secrets))
  log.info('Mistake', pastTypes({ request: secrets }))
  expect(lines.join('')).not.toContain('hush')
  expect(objects()[0]).toMatchObject({ apiKey: '[redacted]', text: '[redacted]' })
})

test('no key of a log line is redacted', async () => {
  const { log, lines } = await logging()
  log.info('All', Object.fromEntries(Object.keys(LOG_KEYS).map(key => [key, 'x'])))
  expect(lines.join('')).not.toContain('[redacted]')
})

test('a ParleyError is written with its code and hint and without a stack', async () => {
  const { log, objects } = await logging()
  log.error('Stopped', {
    error: new StopError('no room', {
      code: 'disk-full',
      exitStatus: EXIT_STATUS.databaseUnavailable,
      hint: 'make room',
    }),
  })
  expect(objects()[0]).toMatchObject({
    error: { type: 'StopError', code: 'disk-full', message: 'no room', hint: 'make room' },
  })
  expect(JSON.stringify(objects())).not.toContain('log.test.ts')
})

test('any other error is written with its stack', async () => {
  const { log, objects } = await logging()
  log.error('Fault', { error: new TypeError('x is not a function') })
  expect(objects()[0]).toMatchObject({
    error: {
      type: 'TypeError',
      message: 'x is not a function',
      at: expect.arrayContaining([expect.stringContaining('log.test.ts')]),
    },
  })
})

test('the error of the system behind one of ours is written without its stack', async () => {
  const { log, objects } = await logging()
  const cause = Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT', syscall: 'open' })
  const error = new StopError('the file cannot be read', {
    code: 'x',
    exitStatus: EXIT_STATUS.settings,
    cause,
  })
  log.error('Fault', { error })
  const expected = { type: 'Error', code: 'ENOENT', message: 'ENOENT: no such file' }
  expect(objects()[0]).toMatchObject({ error: { code: 'x', cause: expected } })
  expect(JSON.stringify(objects())).not.toContain('log.test.ts')
})

test("an error's quoted text and attached request are not written", async () => {
  const { log, lines } = await logging()
  for (const attempt of [() => JSON.parse('hush hush'), () => JSON.parse('{"text": hush}')]) {
    try {
      attempt()
    } catch (cause) {
      log.error('Fault', { error: cause })
      log.error('Fault', { error: new Error('no JSON', { cause }) })
    }
  }
  log.error('Fault', { error: Object.assign(new Error('refused'), { request: { 'x-api-key': 'hush' } }) })
  log.error('Fault', { error: 'hush' })
  expect(lines).toHaveLength(6)
  expect(lines.join('')).not.toContain('hush')
})
