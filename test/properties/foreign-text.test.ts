import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInThisContext } from 'node:vm'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { classifyAnswer } from '../../src/api/classify.ts'
import { readPage } from '../../src/api/paging.ts'
import { pathWithQuery } from '../../src/api/request.ts'
import { isSafeToken, knownWords } from '../../src/api/server-text.ts'
import { isDay, readInstant } from '../../src/base/instant.ts'
import { decodeJson, encodeJson } from '../../src/base/json.ts'
import { jsonLine, safeMultilineText, singleLine } from '../../src/base/safe-text.ts'
import { hitOf } from '../../src/commands/search/hits.ts'
import { unknownFieldName } from '../../src/engine/parse/drift.ts'
import { PARQUET_TYPES } from '../../src/export/parquet-types.ts'
import { failureOf } from '../../src/publish/storage/s3-faults.ts'
import { readNudge } from '../../src/server/nudge.ts'
import { type CrmForm, cellOf, columnsForFields, formOf } from '../../src/store/crm/columns.ts'
import { share } from '../support/effort.ts'

/**
 * Texts of others have any length and content. A regular expression that tries many ways through a text needs time that
 * grows with the square of its length, and a repeated group needs stack for each repetition.
 */
const REPEATED = [
  ...[
    'a',
    'A',
    '1',
    '0',
    ' ',
    '\n',
    '\t',
    '.',
    '/',
    '"',
    "'",
    '\\',
    '{',
    '<',
    '&',
    '_',
    '-',
    '\0',
    'é',
    '漢',
  ],
  ...['👩', '\u202e', 'a-', 'a ', 'aA', '1.', '-1e1 ', "''", '[1,', '://', '{a}', 'a=b, '],
]

/** Far above the time of any linear work, which takes milliseconds, and far below that of quadratic work. */
const LIMIT_MS = 5_000

/** Ends the work when it takes too long, also inside a regular expression. */
function limited(work: () => unknown): string {
  try {
    Object.assign(globalThis, { limitedWork: work })
    runInThisContext('limitedWork()', { timeout: LIMIT_MS })
    return 'done'
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  }
}

const answer = (status: number, text: string) =>
  classifyAnswer({ status, headers: {}, text, bytes: text.length }, { now: 0, secret: 'key' })

/** Not JSON and a wrong envelope are errors with a text; a RangeError is the stack of a regular expression. */
function refused(work: () => unknown): void {
  try {
    work()
  } catch (error) {
    if (error instanceof RangeError) throw error
  }
}

const searchRow = (text: string) => ({
  ...({ kind: 'message', id: '1', at: null, who: null, title: text, url: null } as const),
  ...{ text, detail: null, elapsed_seconds: null, header_message_id: null, meeting_id: null, position: null },
})

const FORMS: readonly CrmForm[] = ['text', 'number', 'boolean', 'timestamp', 'date']

const PLACES: Readonly<Record<string, (text: string) => unknown>> = {
  'the words of an error': text => knownWords(text, 'key'),
  'an error body': text => answer(400, JSON.stringify({ message: text, error: { code: text } })),
  'an error body that is not JSON': text => answer(500, text),
  'an answer that is not JSON': text => answer(200, text),
  'the names of fields': text => [isSafeToken(text), unknownFieldName('', text)],
  'a wrong envelope': text => refused(() => readPage('v2-cursor', { [text]: 1 }, {})),
  'a JSON text': text => refused(() => decodeJson(text)),
  'a JSON number': text => refused(() => decodeJson(`[${text}1]`)),
  'an encoded value': text => encodeJson({ [text]: text }),
  'an instant or day': text => [readInstant(text), readInstant(`2026-03-04T05:06:07.${text}`), isDay(text)],
  'a cell of a typed table': text => FORMS.map(form => cellOf(form, text)),
  'the type and name of a CRM field': text => [
    formOf(text),
    columnsForFields([{ name: text, label: text, type: text, isActive: true, isRelation: false }], new Map()),
  ],
  'a cell of an export': text => Object.values(PARQUET_TYPES).map(({ convert }) => convert?.(text)),
  'a cursor of a request': text => pathWithQuery({ path: '/v2/messages', query: { cursor: text } }),
  'a webhook': text => readNudge({ event: text, [`${text}_ids`]: [text], object: text, id: text }),
  'a text for a terminal': text => [safeMultilineText(text), singleLine(text), jsonLine(text)],
  'a hit of a search': text => hitOf(searchRow(text), ['a', '11', "''"]),
  'an error of a bucket': text =>
    failureOf(
      Object.assign(new Error(text), {
        name: text,
        code: text,
        Region: text,
        $metadata: { httpStatusCode: 400 },
      }),
    ),
}

test.for(Object.entries(PLACES))('%s takes linear time for any text', ([, place]) => {
  const failed = share(REPEATED).flatMap(part => {
    const text = part.repeat(200_000 / part.length)
    const end = limited(() => place(text))
    return end === 'done' ? [] : [`${JSON.stringify(part)}: ${end}`]
  })
  expect(failed).toEqual([])
})

test.for([
  ['the words of an error', 'a-'],
  ['a wrong envelope', 'a-'],
  ['a cell of a typed table', '1'],
  ['a JSON number', '1'],
  ['a JSON number', '1.'],
  ['an instant or day', '1'],
] as const)('%s takes 12 million characters of %j', ([name, part]) => {
  const text = part.repeat(12_000_000 / part.length)
  expect(limited(() => PLACES[name]?.(text))).toBe('done')
})

interface Literal {
  path: string
  text: string
}

function regularExpressions(): Literal[] {
  const folder = new URL('../../src', import.meta.url).pathname
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts'))
    .flatMap(path => {
      const found: Literal[] = []
      const visit = (node: ts.Node) => {
        if (ts.isRegularExpressionLiteral(node)) found.push({ path, text: node.text })
        ts.forEachChild(node, visit)
      }
      visit(ts.createSourceFile(path, readFileSync(join(folder, path), 'utf8'), ts.ScriptTarget.ES2023))
      return found
    })
}

/** Without one of these, a regular expression matches texts of bounded length only. */
const UNBOUNDED = /[*+]|,\}/

const LITERALS = regularExpressions().filter(({ text }) => UNBOUNDED.test(text))

test('no regular expression repeats a group without an upper bound, which takes stack for each repetition', () => {
  const repeatsGroup = ({ text }: Literal) =>
    /(?<!\\)\)(?:[*+]|\{\d+,\})/.test(text.replace(/\[[^\]]*\]/g, '[]'))
  expect(LITERALS.length).toBeGreaterThan(50)
  expect(LITERALS.filter(repeatsGroup)).toEqual([])
})

test('no regular expression repeats more than three of its characters at least, which takes stack as well', () => {
  const repeats = ({ text }: Literal) => /\{(?:[4-9]|\d{2,}),\}/.test(text)
  expect(LITERALS.filter(repeats)).toEqual([])
})

test('no regular expression takes more than linear time', () => {
  const texts = share(REPEATED).flatMap(part =>
    ['!', ' !'].map(end => part.repeat(200_000 / part.length) + end),
  )
  const slow = LITERALS.filter(({ text }) => {
    const end = text.lastIndexOf('/')
    const flags = text.slice(end + 1)
    const expression = new RegExp(text.slice(1, end), flags.includes('g') ? flags : `${flags}g`)
    return texts.some(one => limited(() => one.replace(expression, '')) !== 'done')
  })
  expect(slow).toEqual([])
})
