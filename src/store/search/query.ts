import { safeText } from '../../base/safe-text.ts'
import { tableNamed } from '../../catalog/catalog.ts'
import { literal } from '../database/sql.ts'
import { formsOf, globOf, runsOf, trigramsOf } from './forms.ts'
import { meetingOf, type SearchTable } from './index-schema.ts'

/** Turns the search terms that a person types into one SQL statement that finds the rows. Pure. */

export const SEARCH_KINDS = ['message', 'transcript', 'meeting', 'summary', 'action-item', 'answer'] as const
export type SearchKind = (typeof SEARCH_KINDS)[number]

export interface SearchQuestion {
  /** Each term must occur in one of the row's texts. */
  terms: readonly string[]
  kinds: readonly SearchKind[]
  /** RFC 3339 instants; `from` is inclusive, `to` exclusive. */
  from?: string | undefined
  to?: string | undefined
  limit: number
}

/** A statement with a `?` for each value. */
export interface Sql {
  sql: string
  values: readonly (string | number)[]
}

/**
 * How the statement finds candidate rows, whose texts it compares with the terms. `index`: through the full-text index,
 * plus the rows after `mark`, which are not in the index yet. `isWhole`: there are no rows after `mark`. `time`: all
 * rows, newest first, until there are enough hits.
 */
export type Access = { by: 'index'; match: string; mark: number; isWhole: boolean } | { by: 'time' }

/** A row of the statement's result. */
export interface SearchRow {
  kind: SearchKind
  /** When the message was received or the meeting began. */
  at: string | null
  header_message_id: string | null
  meeting_id: string | null
  /** Position of the transcript entry, the action item, or the chapter. */
  position: number | null
  /** Seconds from the start of the meeting to the transcript entry. */
  elapsed_seconds: number | null
  /** The sender, the speaker, the meeting's owner, or the answer's playbook. */
  who: string | null
  title: string | null
  url: string | null
  text: string | null
  detail: string | null
}

// ---------------------------------------------------------------------------------------------- terms

const QUOTED_OR_WORD = /["“”＂]([^"“”＂]*)(?:["“”＂]|$)|[^\s"“”＂]+/gu

/**
 * Splits the typed text at white space. Quoted text is one term; a quote without an end extends to the end of the text.
 * White space in a term becomes one space.
 */
export function termsOf(typed: string): string[] {
  const terms = [...typed.matchAll(QUOTED_OR_WORD)].map(
    ([whole, quoted]) => quoted?.trim().replace(/\s+/g, ' ') ?? whole,
  )
  return [...new Set(terms)].filter(term => term !== '')
}

const MAX_TRIGRAMS = 32

/**
 * @returns the FTS5 query: every trigram of each term, in any form of the term; undefined when no term is left. A term
 * that has a form without trigrams is left out. Some trigrams of a very long term are enough, since the statement
 * compares the texts of the hits anyway.
 */
export function matchOf(terms: readonly string[]): string | undefined {
  const asked = terms.flatMap(term => {
    const forms = formsOf(term).map(trigramsOf)
    return forms.some(form => form.length === 0)
      ? []
      : [either(forms.map(each => allOf(sampledTrigrams(each))))]
  })
  return asked.length === 0 ? undefined : allOf(asked)
}

/** At most MAX_TRIGRAMS, evenly spaced. */
function sampledTrigrams(trigrams: readonly (readonly string[])[]): string[] {
  const step = Math.ceil(trigrams.length / MAX_TRIGRAMS)
  return trigrams.filter((_, at) => at % step === 0).map(runs => either(runs.map(quoted)))
}

const allOf = (parts: readonly string[]): string => [...new Set(parts)].join(' AND ')
const either = (parts: readonly string[]): string =>
  parts.length === 1
    ? (parts[0] ?? '')
    : `(${parts.map(part => (part.includes(' AND ') ? `(${part})` : part)).join(' OR ')})`

const quoted = (trigram: string): string => `"${trigram.replaceAll('"', '""')}"`

/** The FTS5 query for short terms. @param runs for each term, all indexed trigrams that begin with it */
export function matchAnyOf(runs: readonly (readonly string[])[]): string {
  return runs.map(each => `(${each.map(quoted).join(' OR ')})`).join(' AND ')
}

/**
 * The prefixes, in lower case, of the trigrams that begin with this short term. A voiced kana in half width is two
 * characters, so a form may be longer than a trigram: then only its first three characters count. Undefined when
 * JavaScript and the index may write the term in lower case differently.
 */
export function startsOf(term: string): string[] | undefined {
  const isPlain = isAscii(term.normalize('NFKC')) || term.toLowerCase() === term.toUpperCase()
  return isPlain && term.isWellFormed() ? formsOf(term).flatMap(form => runsOf(form.slice(0, 3))) : undefined
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the index and `toLowerCase` agree on ASCII only.
const isAscii = (text: string): boolean => /^[\x00-\x7f]*$/.test(text)

// ---------------------------------------------------------------------------------------------- kinds

interface SearchedTable {
  kind: SearchKind
  /** Undefined for a small table, which is searched without an index. */
  index?: SearchTable
  /** In the SQL below, `r` is a row of this table, and `m` is its meeting. A row of `meetings` is `m` itself. */
  table: string
  /** SQL of the texts in which terms are searched. */
  texts: readonly string[]
  /** SQL of the result columns; all others are NULL. */
  shows: Partial<Record<keyof SearchRow, string>>
}

const SENDER = `(SELECT coalesce(p.display_name, p.handle) FROM message_copy_participants p
    WHERE p.message_id = r.id AND p.role = 'FROM' ORDER BY p.position LIMIT 1)`

const OF_MEETING = { meeting_id: 'm.id', title: 'm.title', url: 'm.url' } as const

const PLACES: readonly SearchedTable[] = [
  {
    kind: 'message',
    index: 'search_messages',
    table: 'messages',
    texts: ['r.subject', 'r.text'],
    shows: { header_message_id: 'r.header_message_id', who: SENDER, title: 'r.subject', text: 'r.text' },
  },
  {
    kind: 'transcript',
    index: 'search_transcripts',
    table: 'transcript_entries',
    texts: ['r.text'],
    shows: {
      ...OF_MEETING,
      position: 'r.position',
      elapsed_seconds: 'r.elapsed_seconds',
      who: 'r.speaker_name',
      text: 'r.text',
    },
  },
  {
    kind: 'meeting',
    index: 'search_meetings',
    table: 'meetings',
    texts: ['m.title'],
    shows: { ...OF_MEETING, who: 'm.owner_name' },
  },
  {
    kind: 'summary',
    index: 'search_meetings',
    table: 'meeting_chapters',
    texts: ['r.title'],
    shows: { ...OF_MEETING, position: 'r.position', text: 'r.title' },
  },
  {
    kind: 'summary',
    index: 'search_meetings',
    table: 'meeting_chapter_items',
    texts: ['r.item'],
    shows: { ...OF_MEETING, position: 'r.chapter_position', text: 'r.item' },
  },
  {
    kind: 'action-item',
    index: 'search_meetings',
    table: 'meeting_action_items',
    texts: ['r.text', 'r.detail'],
    shows: { ...OF_MEETING, position: 'r.position', text: 'r.text', detail: 'r.detail' },
  },
  {
    kind: 'answer',
    table: 'talk_point_results',
    // The question is not searched: it is the same in every meeting.
    texts: ['r.answer'],
    shows: { ...OF_MEETING, who: 'q.playbook_name', text: 'r.answer', detail: 'r.question' },
  },
]

export function indicesFor(kinds: readonly SearchKind[]): SearchTable[] {
  return [...new Set(PLACES.filter(({ kind }) => kinds.includes(kind)).flatMap(({ index }) => index ?? []))]
}

const COLUMNS: readonly (keyof SearchRow)[] = [
  'at',
  'header_message_id',
  'meeting_id',
  'position',
  'elapsed_seconds',
  'who',
  'title',
  'url',
  'text',
  'detail',
]

// ---------------------------------------------------------------------------------------------- statement

/** One statement for the newest hits of the chosen kinds. Runs on SQLite 3.34 and newer. */
export function searchSql(question: SearchQuestion, access: (index: SearchTable) => Access): Sql {
  const parts = PLACES.filter(({ kind }) => question.kinds.includes(kind)).map(place =>
    placeSql(place, question, place.index === undefined ? { by: 'time' } : access(place.index)),
  )
  const selects = parts.map(({ sql }) => `SELECT * FROM (\n${sql}\n)`)
  return {
    sql: `${selects.join('\nUNION ALL\n')}\nORDER BY at DESC, position DESC LIMIT ?`,
    values: [...parts.flatMap(({ values }) => values), question.limit],
  }
}

function placeSql(place: SearchedTable, question: SearchQuestion, access: Access): Sql {
  const { kind, table, texts, shows } = place
  const time = table === 'messages' ? 'r.received_at' : 'm.start_time'
  // The unary plus keeps SQLite from using the index on the time instead of the full-text index.
  const order = access.by === 'index' ? `+${time}` : time
  const position = shows.position === undefined ? '' : `, ${shows.position} DESC`
  const values = { ...shows, at: time }
  const columns = COLUMNS.map(column => `${values[column] ?? 'NULL'} AS ${column}`)
  const conditions = [
    accessCondition(place, access),
    { sql: liveCondition(table), values: [] },
    ...(question.from === undefined ? [] : [{ sql: `${order} >= ?`, values: [question.from] }]),
    ...(question.to === undefined ? [] : [{ sql: `${order} < ?`, values: [question.to] }]),
    ...question.terms.map(term => termCondition(texts, term)),
  ].filter(({ sql }) => sql !== '')
  return {
    sql: `  SELECT '${kind}' AS kind, ${columns.join(', ')}
  FROM ${from(place, access)}
  WHERE ${conditions.map(({ sql }) => sql).join('\n    AND ')}
  ORDER BY ${order} DESC${position} LIMIT ?`,
    values: [...conditions.flatMap(condition => condition.values), question.limit],
  }
}

/** CROSS JOIN fixes the join order: the statement starts with the hits, or with the newest meeting. */
function from({ table }: SearchedTable, access: Access): string {
  if (table === 'messages') return 'messages r'
  if (table === 'meetings') return 'meetings m'
  if (table === 'talk_point_results') {
    return `meetings m CROSS JOIN playbook_results q ON q.meeting_id = m.id
    CROSS JOIN talk_point_results r ON r.playbook_result_id = q.id`
  }
  return table === 'transcript_entries' && access.by === 'index'
    ? 'transcript_entries r CROSS JOIN meetings m ON m.id = r.meeting_id'
    : `meetings m CROSS JOIN ${table} r ON r.meeting_id = m.id`
}

function accessCondition({ index }: SearchedTable, access: Access): Sql {
  if (access.by === 'time') return { sql: '', values: [] }
  const [key, owner] = index === 'search_meetings' ? ['m._id', meetingOf('rowid')] : ['r._id', 'rowid']
  const inIndex = `${key} IN (SELECT ${owner} FROM ${index} WHERE ${index} MATCH ?)`
  if (access.isWhole) return { sql: inIndex, values: [access.match] }
  return { sql: `(${inIndex} OR ${key} > ?)`, values: [access.match, access.mark] }
}

/** The condition of the `live_` views. In addition, it excludes the title of a withheld meeting. */
function liveCondition(table: string): string {
  if (table === 'messages') return 'r._deleted_at IS NULL'
  const { openWhen } = tableNamed('meetings')
  const result = table === 'talk_point_results' ? ' AND q._deleted_at IS NULL' : ''
  return `m._deleted_at IS NULL${result}${openWhen === undefined ? '' : ` AND m.${openWhen}`}`
}

function termCondition(texts: readonly string[], term: string): Sql {
  const patterns = formsOf(term).map(globOf)
  const compared = term.includes(' ') ? texts.map(withOneSpacePerBreak) : texts
  const each = compared.flatMap(text => patterns.map(() => `${text} GLOB ?`))
  return { sql: `(${each.join(' OR ')})`, values: texts.flatMap(() => patterns) }
}

/**
 * SQL that makes one character of each line break, since GLOB matches a term's space with one character. A line of an
 * e-mail ends with CR LF, after a space if the next line belongs to it.
 */
const withOneSpacePerBreak = (text: string) =>
  `replace(replace(${text}, char(13) || char(10), char(10)), ' ' || char(10), char(10))`

/**
 * The statement with its values filled in, for pasting into `sqlite3`. Terms and trigrams may have any character; a
 * value with an unsafe character is written in hexadecimal.
 */
export function withValues({ sql, values }: Sql): string {
  let at = 0
  return `${sql.replace(/\?/g, () => valueSql(values[at++] ?? ''))};`
}

function valueSql(value: string | number): string {
  if (typeof value === 'number') return String(value)
  return safeText(value) === value ? literal(value) : `CAST(x'${Buffer.from(value).toString('hex')}' AS TEXT)`
}
