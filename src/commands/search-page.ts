import { onOneLine } from '../harmless.ts'
import { formsOf, regexOf } from '../store/search-forms.ts'
import type { SearchRow } from '../store/search-query.ts'

/** What `parley search` prints. Pure. */

/** The part of a text around its hits, on one line. */
export interface Snippet {
  text: string
  /** Where hits begin and end in it, in UTF-16 units, the end not included. */
  marks: readonly (readonly [begin: number, end: number])[]
}

export interface Hit extends Omit<SearchRow, 'text' | 'detail'> {
  /** The offset in the meeting as `h:mm:ss`, where its unit is known. */
  offset: string | null
  snippet: Snippet
}

export function hitOf(row: SearchRow, terms: readonly string[]): Hit {
  const { text, detail, ...rest } = row
  const pattern = patternOf(terms)
  const texts = [text, detail, row.title].filter(one => one !== null)
  const [best = ''] = [...texts].sort((a, b) => distinct(b, pattern) - distinct(a, pattern))
  return { ...rest, offset: offsetOf(row.elapsed_seconds), snippet: snippetOf(best, pattern) }
}

/** Any of the terms, the longest where several begin at the same sign. */
function patternOf(terms: readonly string[]): RegExp {
  const all = terms.flatMap(formsOf).sort((a, b) => b.length - a.length)
  return new RegExp(all.map(regexOf).join('|'), 'gu')
}

function distinct(text: string, pattern: RegExp): number {
  return new Set([...text.matchAll(pattern)].map(([hit]) => hit.normalize('NFKC').toLowerCase())).size
}

const BEFORE = 50
const LENGTH = 180
const MOST_HITS = 100

function snippetOf(whole: string, pattern: RegExp): Snippet {
  const first = bestPlace(whole, pattern)
  const begin = first <= BEFORE ? 0 : betweenSigns(whole, first - BEFORE)
  const end = begin + LENGTH >= whole.length ? whole.length : betweenSigns(whole, begin + LENGTH)
  const part = whole.slice(begin, end)
  const marks: [number, number][] = []
  let text = begin > 0 ? '…' : ''
  let at = 0
  for (const { index, 0: hit } of part.matchAll(pattern)) {
    text += onOneLine(part.slice(at, index))
    at = index + hit.length
    const marked = onOneLine(hit)
    marks.push([text.length, text.length + marked.length])
    text += marked
  }
  return { text: text + onOneLine(part.slice(at)) + (end < whole.length ? '…' : ''), marks }
}

/** Of the first hits, the one that has the most different ones near. */
function bestPlace(whole: string, pattern: RegExp): number {
  const hits = [...whole.matchAll(pattern)].slice(0, MOST_HITS)
  const near = ({ index }: RegExpMatchArray) => {
    const from = index ?? 0
    return distinct(whole.slice(from, from + LENGTH - BEFORE), pattern)
  }
  const best = hits.reduce<{ index: number; near: number }>(
    (found, hit) => {
      const count = near(hit)
      return count > found.near ? { index: hit.index, near: count } : found
    },
    { index: 0, near: 0 },
  )
  return best.index
}

/** Not between the two halves of one sign. */
function betweenSigns(text: string, at: number): number {
  return /[\udc00-\udfff]/.test(text[at] ?? '') ? at + 1 : at
}

/** `0:12:34` */
export function offsetOf(seconds: number | null): string | null {
  if (seconds === null || seconds < 0) return null
  const whole = Math.floor(seconds)
  const two = (value: number) => String(value % 60).padStart(2, '0')
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60))}:${two(whole)}`
}

// ------------------------------------------------------------------------------------------------ people

/** Hits are bold on a terminal that has it, else between « and ». */
export function searchPage(hits: readonly Hit[], { colour }: { colour: boolean }): string {
  return hits.map(hit => `${linesOf(hit, colour).join('\n')}\n`).join('\n')
}

function linesOf({ kind, at, offset, who, title, url, snippet }: Hit, colour: boolean): string[] {
  const said = [who, title].filter(part => part !== null && part !== '').map(part => onOneLine(String(part)))
  const head = [minuteOf(at), kind, offset ?? '', said.join(' · ')].filter(part => part !== '').join('  ')
  return [head, `  ${marked(snippet, colour)}`, ...(url === null ? [] : [`  ${onOneLine(url)}`])]
}

/** To the minute, in UTC. */
const minuteOf = (at: string | null): string =>
  at === null ? 'no time' : `${at.slice(0, 10)} ${at.slice(11, 16)}Z`

function marked({ text, marks }: Snippet, colour: boolean): string {
  const [on, off] = colour ? ['\u001b[1m', '\u001b[22m'] : ['«', '»']
  let line = ''
  let at = 0
  for (const [begin, end] of marks) {
    line += text.slice(at, begin) + on + text.slice(begin, end) + off
    at = end
  }
  return line + text.slice(at)
}

// ------------------------------------------------------------------------------------------------ programs

/** A hit as `--json` prints it. */
export function forPrograms({ snippet, ...hit }: Hit) {
  return { ...hit, snippet: snippet.text, marks: snippet.marks }
}
