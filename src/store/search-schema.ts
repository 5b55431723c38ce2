import { quote } from './sql.ts'

/**
 * What the full-text indices are made of, as SQL. Pure.
 *
 * FTS5 with the tokenizer trigram, which finds any three signs in a row in any language, and holds no text: of each
 * run of three signs it has the rows in which it occurs (`detail=none`), a sixth of the size of an index with
 * positions. What a search finds is checked against the text, so that it loses nothing by it. `remove_diacritics` and
 * `secure-delete` are left alone, since sqlite3 of before 3.45 and 3.42 could not read such an index.
 */
export interface SearchIndex {
  /** The full-text table. */
  name: SearchTable
  /** The table by whose keys, `_id`, it is known how far it is built: rows up to a mark are in it, later ones are not. */
  source: string
  /** Makes the full-text table and the triggers that keep it, by their names. */
  objects: ReadonlyMap<string, string>
  /** Takes in what belongs to the source's rows after the first parameter and up to the second. */
  fill: string
  /** Rows of the source after the parameter: their keys, `id`, and how much work each is, in `bytes` of text. */
  weigh: string
}

export type SearchTable = 'search_messages' | 'search_transcripts' | 'search_meetings'

/** The table that says how far each index is built; no row, no index. */
export const MARKS = 'search_indices'

/** `state` of the index's content: `kept`, or one of the steps on which what was erased leaves it. */
export const CREATE_MARKS = `CREATE TABLE ${MARKS} (
  name TEXT PRIMARY KEY NOT NULL,
  indexed_up_to INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL DEFAULT 'kept'
) STRICT, WITHOUT ROWID`

/** Rows of one table that go into an index. */
interface Part {
  table: string
  /** Columns of the full-text table → columns of this one. */
  texts: Readonly<Record<string, string>>
  /** Other columns that the key in the index is made of. */
  keyed: readonly string[]
  /** The key in the index, of the row and of the source's row that it belongs to. */
  key(row: string, owner: string): string
  /** Left out are rows that have no place in the key, of which the API would have to send thousands. */
  fits?(row: string): string
  /** Finds the source's row; the part's own where there is none. */
  ownedBy?: string
}

const PLACE_BITS = 20
const OWNER_BITS = 36
const MOST_PLACES = 2 ** PLACE_BITS - 1
const MOST_SECTIONS = 2 ** (OWNER_BITS - PLACE_BITS) - 1

/**
 * Children of a meeting are stored by their text keys, without a number of their own. Theirs is made of the meeting's
 * and of their positions: section 0 has the title at place 0 and the action items after it, section n + 1 the title
 * of chapter n and its points after it.
 */
const meetingKey = (owner: string, section: string, place: string) =>
  `(${owner}._id << ${OWNER_BITS}) + (${section} << ${PLACE_BITS}) + ${place}`

/** The meeting's `_id` in such a key, as SQL. */
export const meetingOf = (key: string): string => `${key} >> ${OWNER_BITS}`

const MEETING_PARTS: readonly Part[] = [
  {
    table: 'meetings',
    texts: { text: 'title' },
    keyed: [],
    key: row => meetingKey(row, '0', '0'),
  },
  {
    table: 'meeting_action_items',
    texts: { text: 'text', detail: 'detail' },
    keyed: ['meeting_id', 'position'],
    key: (row, owner) => meetingKey(owner, '0', `${row}.position + 1`),
    fits: row => `${row}.position < ${MOST_PLACES}`,
    ownedBy: 'meeting_id',
  },
  {
    table: 'meeting_chapters',
    texts: { text: 'title' },
    keyed: ['meeting_id', 'position'],
    key: (row, owner) => meetingKey(owner, `(${row}.position + 1)`, '0'),
    fits: row => `${row}.position < ${MOST_SECTIONS}`,
    ownedBy: 'meeting_id',
  },
  {
    table: 'meeting_chapter_items',
    texts: { text: 'item' },
    keyed: ['meeting_id', 'chapter_position', 'position'],
    key: (row, owner) => meetingKey(owner, `(${row}.chapter_position + 1)`, `${row}.position + 1`),
    fits: row => `${row}.chapter_position < ${MOST_SECTIONS} AND ${row}.position < ${MOST_PLACES}`,
    ownedBy: 'meeting_id',
  },
]

const ownKey = (row: string) => `${row}._id`

interface Composition {
  source: string
  columns: readonly string[]
  parts: readonly Part[]
}

function index(name: SearchTable, { source, columns, parts }: Composition): SearchIndex {
  const objects = [
    [name, createTable(name, source, columns, parts)] as const,
    ...parts.flatMap(part => triggers(name, source, columns, part)),
  ]
  return {
    name,
    source,
    objects: new Map(objects),
    fill: fill(name, source, columns, parts),
    weigh: weigh(source, parts),
  }
}

/**
 * One table's rows are told by their own keys, so that its text can be had through the index; other texts cannot. Then
 * the sizes are kept too: without them nobody could count the rows, and tools that count every table would fail.
 */
function createTable(
  name: SearchTable,
  source: string,
  columns: readonly string[],
  parts: readonly Part[],
): string {
  const content =
    parts.length === 1 ? `content='${source}', content_rowid='_id', columnsize=0` : "content='', columnsize=1"
  const options = `${content}, tokenize='trigram', detail=none`
  return `CREATE VIRTUAL TABLE ${name} USING fts5(${columns.join(', ')}, ${options})`
}

const mark = (name: SearchTable) => `(SELECT indexed_up_to FROM ${MARKS} WHERE name = '${name}')`

/** Rows after the mark are left to the building. An index is told what to forget by what it was given. */
function triggers(
  name: SearchTable,
  source: string,
  columns: readonly string[],
  part: Part,
): (readonly [string, string])[] {
  const { table, ownedBy } = part
  const change = (row: string, forgets: boolean) => {
    const owner = ownedBy === undefined ? row : 'o'
    const conditions = [
      ...(ownedBy === undefined ? [] : [`o.id = ${row}.${ownedBy}`]),
      `${owner}._id <= ${mark(name)}`,
      ...(part.fits ? [part.fits(row)] : []),
    ]
    const into = [...(forgets ? [name] : []), 'rowid', ...columns]
    const values = [...(forgets ? ["'delete'"] : []), part.key(row, owner), ...textsOf(part, columns, row)]
    const from = ownedBy === undefined ? '' : ` FROM ${source} o`
    return `INSERT INTO ${name} (${into.join(', ')}) SELECT ${values.join(', ')}${from} WHERE ${conditions.join(' AND ')};`
  }
  const watched = [...part.keyed, ...Object.values(part.texts)].map(quote)
  const differs = watched.map(column => `OLD.${column} IS NOT NEW.${column}`).join(' OR ')
  const trigger = (event: string, on: string, when: string, changes: readonly string[]) => {
    const called = `${name}_${table}_${event}`
    return [
      called,
      `CREATE TRIGGER ${called} AFTER ${on} ON ${table}${when} BEGIN ${changes.join(' ')} END`,
    ] as const
  }
  return [
    trigger('insert', 'INSERT', '', [change('NEW', false)]),
    trigger('delete', 'DELETE', '', [change('OLD', true)]),
    trigger('update', `UPDATE OF ${watched.join(', ')}`, ` WHEN ${differs}`, [
      change('OLD', true),
      change('NEW', false),
    ]),
  ]
}

/**
 * After each text, so that any one or two signs of it begin a run of three, and can be looked for by that. What is
 * found is checked against the text as it is.
 */
const END = '  '

function textsOf({ texts }: Part, columns: readonly string[], row: string): string[] {
  return columns.map(column =>
    texts[column] === undefined ? 'NULL' : `${row}.${quote(texts[column])} || '${END}'`,
  )
}

/** In the order of the keys: FTS5 writes out what it has gathered whenever a key is smaller than the one before. */
function fill(name: SearchTable, source: string, columns: readonly string[], parts: readonly Part[]): string {
  const selects = parts.map(part => {
    const owner = part.ownedBy === undefined ? 'r' : 'o'
    const from =
      part.ownedBy === undefined
        ? `${part.table} r`
        : `${source} o JOIN ${part.table} r ON r.${part.ownedBy} = o.id`
    const fits = part.fits ? ` AND ${part.fits('r')}` : ''
    return `SELECT ${[part.key('r', owner), ...textsOf(part, columns, 'r')].join(', ')} FROM ${from}
    WHERE ${owner}._id > @after AND ${owner}._id <= @upTo${fits}`
  })
  return `INSERT INTO ${name} (rowid, ${columns.join(', ')})
  ${selects.join('\n  UNION ALL\n  ')} ORDER BY 1`
}

/** What a row costs beside its text. */
const ROW_BYTES = 64

function weigh(source: string, parts: readonly Part[]): string {
  const weights = parts.map(({ table, texts, ownedBy }) => {
    const row = ownedBy === undefined ? 'o' : 'r'
    const lengths = Object.values(texts).map(column => `coalesce(octet_length(${row}.${quote(column)}), 0)`)
    const bytes = [ROW_BYTES, ...lengths].join(' + ')
    return ownedBy === undefined
      ? bytes
      : `(SELECT coalesce(sum(${bytes}), 0) FROM ${table} r WHERE r.${ownedBy} = o.id)`
  })
  return `SELECT o._id AS id, ${weights.join(' + ')} AS bytes FROM ${source} o WHERE o._id > ? ORDER BY o._id`
}

export const SEARCH_INDICES: readonly SearchIndex[] = [
  index('search_messages', {
    source: 'messages',
    columns: ['subject', 'text'],
    parts: [{ table: 'messages', texts: { subject: 'subject', text: 'text' }, keyed: [], key: ownKey }],
  }),
  index('search_transcripts', {
    source: 'transcript_entries',
    columns: ['text'],
    parts: [{ table: 'transcript_entries', texts: { text: 'text' }, keyed: [], key: ownKey }],
  }),
  index('search_meetings', {
    source: 'meetings',
    columns: ['text', 'detail'],
    parts: MEETING_PARTS,
  }),
]
