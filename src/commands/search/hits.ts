import { singleLine } from '../../base/safe-text.ts'
import { formsOf, regexOf } from '../../store/search/forms.ts'
import type { SearchRow } from '../../store/search/query.ts'
import { styledText } from '../../terminal/output.ts'

/** The output of `parley search`. Pure. */

/** The part of a text around its matches, on one line. */
export interface Snippet {
  text: string
  /** Start and end (exclusive) of each match in `text`, in UTF-16 units. */
  marks: readonly (readonly [begin: number, end: number])[]
}

export interface Hit extends Omit<SearchRow, 'text' | 'detail'> {
  /** The offset in the meeting as `h:mm:ss`; null when it is not known. */
  offset: string | null
  snippet: Snippet
}

export function hitOf(row: SearchRow, terms: readonly string[]): Hit {
  const { text, detail, ...rest } = row
  const pattern = patternOf(terms)
  const texts = [text, detail, row.title].filter(one => one !== null)
  const [best = ''] = [...texts].sort((a, b) => distinctHits(b, pattern) - distinctHits(a, pattern))
  return { ...rest, offset: offsetOf(row.elapsed_seconds), snippet: snippetOf(best, pattern) }
}

/** Matches any of the terms, the longest one first. */
function patternOf(terms: readonly string[]): RegExp {
  const all = terms.flatMap(formsOf).sort((a, b) => b.length - a.length)
  return new RegExp(all.map(regexOf).join('|'), 'gu')
}

function distinctHits(text: string, pattern: RegExp): number {
  const hits = new Set(text.match(pattern))
  return new Set([...hits].map(hit => hit.normalize('NFKC').toLowerCase())).size
}

const BEFORE = 50
const LENGTH = 180
const MAX_HITS_COMPARED = 100

function snippetOf(whole: string, pattern: RegExp): Snippet {
  const first = bestHitIndex(whole, pattern)
  const begin = first <= BEFORE ? 0 : characterBoundary(whole, first - BEFORE)
  const end = begin + LENGTH >= whole.length ? whole.length : characterBoundary(whole, begin + LENGTH)
  const part = whole.slice(begin, end)
  const marks: [number, number][] = []
  let text = begin > 0 ? '…' : ''
  let at = 0
  for (const { index, 0: hit } of part.matchAll(pattern)) {
    text += singleLine(part.slice(at, index))
    at = index + hit.length
    const markedText = singleLine(hit)
    marks.push([text.length, text.length + markedText.length])
    text += markedText
  }
  return { text: text + singleLine(part.slice(at)) + (end < whole.length ? '…' : ''), marks }
}

/** The start of the match with the largest number of distinct terms close after it, among the first matches. */
function bestHitIndex(whole: string, pattern: RegExp): number {
  const hits = [...whole.matchAll(pattern)].slice(0, MAX_HITS_COMPARED)
  const near = ({ index }: RegExpMatchArray) => {
    const from = index ?? 0
    return distinctHits(whole.slice(from, from + LENGTH - BEFORE), pattern)
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

/** The index, moved past the second half of a surrogate pair. */
function characterBoundary(text: string, at: number): number {
  return /[\udc00-\udfff]/.test(text[at] ?? '') ? at + 1 : at
}

/** An offset such as `0:12:34`. */
export function offsetOf(seconds: number | null): string | null {
  if (seconds === null || seconds < 0) return null
  const whole = Math.floor(seconds)
  const two = (value: number) => String(value % 60).padStart(2, '0')
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60))}:${two(whole)}`
}

// ------------------------------------------------------------------------------------------------ text

/** Matches are bold on a terminal with colours, otherwise enclosed in « and ». */
export function searchPage(hits: readonly Hit[], { colour }: { colour: boolean }): string {
  return hits.map(hit => `${hitLines(hit, colour).join('\n')}\n`).join('\n')
}

function hitLines({ kind, at, offset, who, title, url, snippet }: Hit, colour: boolean): string[] {
  const said = [who, title].filter(part => part !== null && part !== '').map(part => singleLine(String(part)))
  const head = [minuteText(at), kind, offset ?? '', said.join(' · ')].filter(part => part !== '').join('  ')
  return [head, `  ${marked(snippet, colour)}`, ...(url === null ? [] : [`  ${singleLine(url)}`])]
}

/** The instant to the minute, in UTC. */
const minuteText = (at: string | null): string =>
  at === null ? 'no time' : `${at.slice(0, 10)} ${at.slice(11, 16)}Z`

function marked({ text, marks }: Snippet, colour: boolean): string {
  const emphasis = (hit: string) => (colour ? styledText('bold', hit) : `«${hit}»`)
  let line = ''
  let at = 0
  for (const [begin, end] of marks) {
    line += text.slice(at, begin) + emphasis(text.slice(begin, end))
    at = end
  }
  return line + text.slice(at)
}

// ------------------------------------------------------------------------------------------------ JSON

export function hitJson({ snippet, ...hit }: Hit) {
  return { ...hit, snippet: snippet.text, marks: snippet.marks }
}
