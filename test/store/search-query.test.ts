import { expect, test } from 'vitest'
import { hitOf, offsetOf, searchPage } from '../../src/commands/search/hits.ts'
import { matchOf, type SearchRow, termsOf } from '../../src/store/search/query.ts'

test.each([
  ['budget', ['budget']],
  ['  two   words ', ['two', 'words']],
  ['全角　空白', ['全角', '空白']],
  ['"a phrase" word', ['a phrase', 'word']],
  ['“curly quotes” and ＂wide ones＂', ['curly quotes', 'and', 'wide ones']],
  ['"open to the end', ['open to the end']],
  ['a"b"c', ['a', 'b', 'c']],
  ['same same "same"', ['same']],
  ['""" " ""', []],
  ['OR NOT (x*) text:y', ['OR', 'NOT', '(x*)', 'text:y']],
])('%j is searched as %j', (typed, terms) => {
  expect(termsOf(typed)).toEqual(terms)
})

test.each([
  [['見積書を'], '"見積書" AND "積書を"'],
  [['ab'], undefined],
  [['ab', '見積書'], '"見積書"'],
  [['見積ア'], '("見積ア" OR "見積ｱ")'],
  [['🙂🙃😉'], '"🙂🙃😉"'],
])('%j sends %j to the index', (terms, match) => {
  expect(matchOf(terms)).toBe(match)
})

test('a very long term sends some of its parts to the index', () => {
  const long = Array.from({ length: 900 }, (_, at) => String.fromCodePoint(0x4e00 + at)).join('')
  const parts = matchOf([long])?.split(' AND ') ?? []
  expect(parts.length).toBeLessThanOrEqual(32)
  expect(parts.length).toBeGreaterThan(16)
})

const ROW: SearchRow = {
  kind: 'message',
  at: '2026-03-04T05:06:07.123Z',
  header_message_id: '<m>',
  meeting_id: null,
  position: null,
  elapsed_seconds: null,
  who: 'Aiko',
  title: 'Offer',
  url: null,
  text: null,
  detail: null,
}

const snippet = (text: string, ...terms: string[]) => hitOf({ ...ROW, text }, terms).snippet.text

test('a snippet is the part of the text with the most words', () => {
  const text = `alpha ${'x '.repeat(200)} alpha beta ${'y '.repeat(200)}`
  expect(snippet(text, 'alpha', 'beta')).toMatch(/^… ?(x )+alpha beta (y )+y?…$/)
})

test('a snippet marks the characters of the text, whatever their width', () => {
  const marked = (text: string, ...terms: string[]) => {
    const { text: shown, marks } = hitOf({ ...ROW, text }, terms).snippet
    return marks.map(([begin, end]) => shown.slice(begin, end))
  }
  expect(marked('御社のＡＢＣと ﾊﾟｲﾛｯﾄ の件', 'abc', 'パイロット')).toEqual(['ＡＢＣ', 'ﾊﾟｲﾛｯﾄ'])
  expect(marked('Pilot (ABC)', '（ａｂｃ）')).toEqual(['(ABC)'])
})

test('a snippet never cuts a character in two', () => {
  for (let before = 48; before < 54; before += 1) {
    const text = `${'🙂'.repeat(40)}${'a'.repeat(before)}budget${'b'.repeat(before)}${'🙂'.repeat(99)}`
    expect(snippet(text, 'budget').isWellFormed()).toBe(true)
  }
})

test('no text controls the terminal', () => {
  const nasty = 'budget\u001b[2J\r\n\u202eevil\u0007\u2028end'
  expect(snippet(nasty, 'budget')).toBe('budget [2J evil end')
  const page = searchPage([hitOf({ ...ROW, title: nasty, who: nasty, text: nasty }, ['budget'])], {
    colour: false,
  })
  expect(page).toBe(
    '2026-03-04 05:06Z  message  budget [2J evil end · budget [2J evil end\n  «budget» [2J evil end\n',
  )
})

test('hits are bold on a terminal with colours', () => {
  const page = searchPage([hitOf({ ...ROW, text: 'The Budget' }, ['budget'])], { colour: true })
  expect(page).toContain('  The \u001b[1mBudget\u001b[22m\n')
})

test.each([
  [0, '0:00:00'],
  [59.9, '0:00:59'],
  [754.2, '0:12:34'],
  [36_000, '10:00:00'],
  [null, null],
])('%j seconds are shown as %j', (seconds, shown) => {
  expect(offsetOf(seconds)).toBe(shown)
})
