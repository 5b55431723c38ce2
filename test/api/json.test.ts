import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeJson, encodeJson, exactNumber, isExactNumber, isSameValue } from '../../src/base/json.ts'

/** What a list with one literal in it becomes after reading and writing. */
const throughBoth = (literal: string) => encodeJson(decodeJson(`[${literal}]`).value)

describe('numbers in JSON', () => {
  it.each([
    '12345678901234567890',
    '-12345678901234567890',
    '9007199254740993',
    '1234567890.12345678901',
    '0.1234567890123456789',
    '1e400',
    '-1E-400',
    '1.000000000000000001e5',
    '99999999999999999999.99',
  ])('every digit of %s is kept', literal => {
    const { value, exact } = decodeJson(`{"amount": ${literal}}`)
    expect(exact).toBe(true)
    expect(encodeJson(value)).toBe(`{"amount":${literal}}`)
  })

  it.each([
    ['0', 0],
    ['-1.5', -1.5],
    ['1.2999999999999998', 1.2999999999999998],
    ['9007199254740992', 9007199254740992],
    ['1e5', 1e5],
    ['1.50E-3', 0.0015],
    ['1000000000000000000000', 1e21],
    ['0.00000000000000000', 0],
    ['100.0000000000000000', 100],
  ])('%s is a plain number, since a double holds it', (literal, number) => {
    expect(decodeJson(`[${literal}]`).value).toEqual([number])
    expect(decodeJson(literal).value).toBe(number)
  })

  it('digits inside strings are plain text', () => {
    const text = JSON.stringify({
      id: '12345678-3e45-4e5e-9e1e-123456789012',
      big: '12345678901234567890',
      version: 'see 1.2.3.4.5.6.7.8.9.10.11.12, or so',
    })
    expect(decodeJson(text)).toEqual({ value: JSON.parse(text), exact: false })
  })

  it('the exact text is kept only for numbers that no double holds', () => {
    expect(exactNumber(decodeJson('12345678901234567890').value)).toEqual({ text: '12345678901234567890' })
    for (const other of [1, '1', null, {}, { value: '1', isLosslessNumber: true }]) {
      expect(exactNumber(other)).toBeUndefined()
      expect(isExactNumber(other)).toBe(false)
    }
  })

  it('the value of a decimal literal never changes', () => {
    const literal = fc
      .tuple(
        fc.constantFrom('', '-'),
        fc.bigInt({ min: 1n, max: 10n ** 30n }),
        fc.nat(25),
        fc.integer({ min: -40, max: 40 }),
      )
      .map(
        ([sign, digits, zeros, exponent]) =>
          `${sign}${digits}.${'0'.repeat(zeros)}${digits % 1000n}e${exponent}`,
      )
    fc.assert(
      fc.property(literal, text => {
        expect(scaled(throughBoth(text).slice(1, -1))).toBe(scaled(text))
      }),
    )
  })
})

/** The exact value of a literal as an integer of 10^-200, computed independently of the code under test. */
function scaled(literal: string): bigint {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? []
  const power = 200 + Number(exponent) - fraction.length
  return BigInt(`${sign}${whole}${fraction}`) * 10n ** BigInt(power)
}

describe('JSON text', () => {
  const lossless = '"n":12345678901234567890'

  it('the text equals that of JSON.stringify', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        expect(encodeJson(decodeJson(JSON.stringify(value)).value)).toBe(JSON.stringify(value))
        const besideExact = { value, ...Object(decodeJson(`{${lossless}}`).value) }
        expect(encodeJson(besideExact)).toBe(`{"value":${JSON.stringify(value)},${lossless}}`)
      }),
    )
  })

  it('values that JSON cannot express are left out, also next to exact numbers', () => {
    const big = decodeJson('12345678901234567890').value
    expect(encodeJson(undefined)).toBe('null')
    expect(encodeJson({ a: undefined, big, list: [undefined] })).toBe(
      '{"big":12345678901234567890,"list":[null]}',
    )
  })

  it('data that looks like an exact number stays data', () => {
    const text = '{"value":"12","isLosslessNumber":true}'
    expect(encodeJson(decodeJson(text).value)).toBe(text)
  })

  it.each([
    ['plainly', ''],
    ['losslessly', `,${lossless}`],
  ])('__proto__ is a normal key and the last of repeated keys wins when read %s', (_, extra) => {
    const { value } = decodeJson(`{"__proto__":{"admin":true},"a":1,"a":[2]${extra}}`)
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(encodeJson(value)).toBe(`{"__proto__":{"admin":true},"a":[2]${extra}}`)
  })

  it('a byte order mark is skipped', () => {
    expect(decodeJson('\ufeff{"a":1}').value).toEqual({ a: 1 })
  })

  it.each([
    ['lists', '['.repeat(200_000), ']'.repeat(200_000)],
    ['objects', '{"a":'.repeat(200_000), '}'.repeat(200_000)],
  ])(
    'JSON of any depth is read, compared and written, with exact numbers in it too: %s',
    (_, open, close) => {
      const deep = (inner: string) => `${open}${inner}${close}`
      for (const inner of ['1', '12345678901234567890']) {
        const { value } = decodeJson(deep(inner))
        expect(encodeJson(value) === deep(inner)).toBe(true)
        expect(isSameValue(value, decodeJson(deep(inner)).value)).toBe(true)
        expect(isSameValue(value, decodeJson(deep('2')).value)).toBe(false)
      }
    },
  )

  it('two values are equal when only the order of their fields differs', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        const [left, right] = [one, other].map(value => decodeJson(JSON.stringify(value)).value)
        expect(isSameValue(left, right)).toBe(isDeepStrictEqual(left, right))
        expect(isSameValue(left, reordered(left))).toBe(true)
      }),
    )
    expect(isSameValue({ length: 0 }, [])).toBe(false)
    expect(isSameValue([], {})).toBe(false)
  })

  it('strings that look like numbers stay strings, next to exact numbers too', () => {
    const text = String.raw`{"12345678901234567890":"a\\",":1e400}":1e400,"s":"\\\"1e400","d":[-0.1,1e400]}`
    expect(encodeJson(decodeJson(text).value)).toBe(text)
  })

  it.each([
    '',
    '{',
    '<html>',
    '{"a":01}',
    '[1,]',
    'NaN',
    '[12345678901234567890,]',
    '[012345678901234567890]',
    '{12345678901234567890:1}',
    '[1e400 1e400]',
    '[1e400e1]',
    '[1e400',
    '[1e400"',
    "{'a':1}",
  ])('the text %j is refused', text => {
    expect(() => decodeJson(text)).toThrow(SyntaxError)
  })
})

/** The same value with the fields of every object in reverse. */
function reordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reordered)
  if (typeof value !== 'object' || value === null || isExactNumber(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, inner]) => [name, reordered(inner)]),
  )
}
