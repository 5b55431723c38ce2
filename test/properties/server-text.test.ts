import fc from 'fast-check'
import { expect, test } from 'vitest'
import { classifyAnswer } from '../../src/api/classify.ts'
import { knownWords } from '../../src/api/server-text.ts'

const SECRET = 'sk_live_4f3c2b1aabcd'

const KNOWN = [
  'Invalid',
  'API',
  'key',
  'cursor',
  'not',
  'found',
  'the',
  'X-Api-Key',
  'received_from',
  'meeting:',
]

/** Words that no list of HTTP's words holds: each has a letter of another alphabet, or is what an id or a key looks like. */
const someone = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).map(text => `zq${text.replace(/\s/g, '')}`),
  fc.constantFrom('Ada', 'Lovelace', 'ada@example.com', 'sk_live…abcd', 'sk_live', 'abcd', '4711', SECRET),
)

const CASES = [
  'a sentence',
  'a sentence in quotation marks',
  'a list of sentences',
  'the code of the v2 body',
  'the message of the v2 body',
  'the error of the v1 body',
  'no JSON',
] as const

const body: Record<(typeof CASES)[number], (text: string) => string> = {
  'a sentence': message => JSON.stringify({ statusCode: 400, message, error: 'Bad Request' }),
  'a sentence in quotation marks': text => JSON.stringify({ message: `Meeting “${text}” not found` }),
  'a list of sentences': text => JSON.stringify({ message: [text, `limit: ${text}`] }),
  'the code of the v2 body': code =>
    JSON.stringify({ error: { code, message: 'not found', request_id: code } }),
  'the message of the v2 body': message => JSON.stringify({ error: { code: 'invalid', message } }),
  'the error of the v1 body': error => JSON.stringify({ message: 'not found', error }),
  'no JSON': text => `<html><title>${text}</title></html>`,
}

test.for(CASES)('an error body yields no text of people, no id and no key: %s', place => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constantFrom(...KNOWN), someone), { minLength: 1, maxLength: 8 }),
      fc.constantFrom(400, 401, 403, 404, 409, 422, 429, 500, 503),
      (parts, status) => {
        const text = body[place](parts.join(' '))
        const outcome = classifyAnswer(
          { status, headers: {}, text, bytes: text.length },
          { now: 0, secret: SECRET },
        )
        const told = 'message' in outcome ? outcome.message : 'no message'
        const words = told.split(/[^\p{L}\p{N}…]+/u)
        expect(words.filter(word => /^(zq|Ada|Lovelace|example|sk|live|abcd|4711)/.test(word))).toEqual([])
      },
    ),
  )
})

test('any text yields only known words and ellipses, on one line', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400 }), text => {
      expect(knownWords(`cursor ${text} expired`, '')).toMatch(/^[A-Za-z ….,:;!?()[\]/_-]*$/)
    }),
  )
})

test('only the beginning of a text is read, and no part of a key at its cut', () => {
  const start = 'the '.repeat(1000)
  expect(knownWords(`${start}${' '.repeat(200)} cursor expired`, '')).toBe('')
  expect(knownWords(`cursor ${' '.repeat(4080)}access-token`, 'access-token')).toBe('cursor …')
})

test('a key that consists of known words is hidden', () => {
  expect(knownWords('The key access-token is invalid', 'access-token')).toBe('The key … is invalid')
})
