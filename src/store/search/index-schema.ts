import { quote } from '../database/sql.ts'

/**
 * The full-text indices as SQL. Pure.
 *
 * They use FTS5 with the trigram tokenizer, which finds any three consecutive characters in any language. They store no
 * texts. With `detail=none` an index stores only the rows of each trigram, in a sixth of the size of an index with
 * positions. A search compares the texts of the hits, so the result is exact. The options `remove_diacritics` (SQLite
 * 3.45) and `secure-delete` (SQLite 3.42) are not used, since older sqlite3 shells could not read such an index.
 */
export interface SearchIndex {
  name: SearchTable
  /**
   * The table whose `_id` says how far the index is built: rows up to the mark are in the index, later rows are not.
   */
  source: string
  /** SQL that creates the full-text table and its triggers, by name. */
  objects: ReadonlyMap<string, string>
  /** SQL that indexes the source rows with `@after` < `_id` <= `@upTo`, with their children. */
  fill: string
  /** SQL for the source rows after a given `_id`: their `_id` as `id`, and the cost of indexing each as `bytes`. */
  weigh: string
}

export type SearchTable = 'search_messages' | 'search_transcripts' | 'search_meetings'

/** The table of marks: how far each index is built. A search does not use an index that has no row there. */
export const MARKS = 'search_indices'

/** `state`: whether the index holds trigrams of edited or deleted texts, and the step of their purge (`IndexState`). */
export const CREATE_MARKS = `CREATE TABLE ${MARKS} (
  name TEXT PRIMARY KEY NOT NULL,
  indexed_up_to INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL DEFAULT 'kept'
) STRICT, WITHOUT ROWID`

/** A table whose rows go into an index. */
interface IndexedTable {
  table: string
  /** Columns of the full-text table → columns of this table. */
  texts: Readonly<Record<string, string>>
  /** Columns of this table that the key in the index depends on. */
  keyed: readonly string[]
  /**
   * SQL for the key of a row in the index.
   * @param row the alias of the row
   * @param owner the alias of the source row to which it belongs
   */
  key(row: string, owner: string): string
  /**
   * SQL condition for rows whose positions fit into the key. Other rows are not indexed: they occur only in a meeting
   * with more than 65,000 chapters or a million items.
   */
  fits?(row: string): string
  /** Column with the `id` of the source row. Undefined when this table is the source. */
  ownedBy?: string
}

const PLACE_BITS = 20
const OWNER_BITS = 36
const MAX_PLACE = 2 ** PLACE_BITS - 1
const MAX_SECTION = 2 ** (OWNER_BITS - PLACE_BITS) - 1

/**
 * The key of a meeting's text in the index. Children of a meeting have no integer key, so the key in the index consists
 * of the meeting's `_id`, a section and a place. Section 0: the title at place 0, then the action items. Section n + 1:
 * the title of chapter n at place 0, then its items.
 */
const meetingKey = (owner: string, section: string, place: string) =>
  `(${owner}._id << ${OWNER_BITS}) + (${section} << ${PLACE_BITS}) + ${place}`

/** SQL of the meeting's `_id` in a key of `meetingKey`. */
export const meetingOf = (key: string): string => `${key} >> ${OWNER_BITS}`

const MEETING_PARTS: readonly IndexedTable[] = [
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
    fits: row => `${row}.position < ${MAX_PLACE}`,
    ownedBy: 'meeting_id',
  },
  {
    table: 'meeting_chapters',
    texts: { text: 'title' },
    keyed: ['meeting_id', 'position'],
    key: (row, owner) => meetingKey(owner, `(${row}.position + 1)`, '0'),
    fits: row => `${row}.position < ${MAX_SECTION}`,
    ownedBy: 'meeting_id',
  },
  {
    table: 'meeting_chapter_items',
    texts: { text: 'item' },
    keyed: ['meeting_id', 'chapter_position', 'position'],
    key: (row, owner) => meetingKey(owner, `(${row}.chapter_position + 1)`, `${row}.position + 1`),
    fits: row => `${row}.chapter_position < ${MAX_SECTION} AND ${row}.position < ${MAX_PLACE}`,
    ownedBy: 'meeting_id',
  },
]

const ownKey = (row: string) => `${row}._id`

interface Composition {
  name: SearchTable
  source: string
  columns: readonly string[]
  parts: readonly IndexedTable[]
}

function index(composed: Composition): SearchIndex {
  const { name, source, parts } = composed
  const objects = [[name, createTable(composed)] as const, ...parts.flatMap(part => triggers(composed, part))]
  return { name, source, objects: new Map(objects), fill: fill(composed), weigh: weigh(composed) }
}

/**
 * An index over one table reads its texts from that table (`content=`). An index over several tables is contentless and
 * stores column sizes. Without column sizes, `count(*)` on the index fails, and so does a tool that counts the rows of
 * every table.
 */
function createTable({ name, source, columns, parts }: Composition): string {
  const content =
    parts.length === 1 ? `content='${source}', content_rowid='_id', columnsize=0` : "content='', columnsize=1"
  const options = `${content}, tokenize='trigram', detail=none`
  return `CREATE VIRTUAL TABLE ${name} USING fts5(${columns.join(', ')}, ${options})`
}

const mark = (name: SearchTable) => `(SELECT indexed_up_to FROM ${MARKS} WHERE name = '${name}')`

/**
 * Triggers for rows up to the mark; `fill` indexes later rows. To delete an entry, FTS5 needs its original texts. An
 * index that loses a text becomes outdated (`IndexState`), whichever program edits or deletes the text.
 */
function triggers({ name, source, columns }: Composition, part: IndexedTable): (readonly [string, string])[] {
  const { table, ownedBy } = part
  const ownerOf = (row: string) => (ownedBy === undefined ? row : 'o')
  /** SQL that selects the row when it is indexed. */
  const indexed = (row: string) => {
    const conditions = [
      ...(ownedBy === undefined ? [] : [`o.id = ${row}.${ownedBy}`]),
      `${ownerOf(row)}._id <= ${mark(name)}`,
      ...(part.fits ? [part.fits(row)] : []),
    ]
    const from = ownedBy === undefined ? '' : ` FROM ${source} o`
    return `${from} WHERE ${conditions.join(' AND ')}`
  }
  const change = (row: string, isDelete: boolean) => {
    const into = [...(isDelete ? [name] : []), 'rowid', ...columns]
    const key = part.key(row, ownerOf(row))
    const values = [...(isDelete ? ["'delete'"] : []), key, ...textsOf(part, columns, row)]
    return `INSERT INTO ${name} (${into.join(', ')}) SELECT ${values.join(', ')}${indexed(row)};`
  }
  const noteLoss = (isLost: (column: string) => string) => {
    const lost = Object.values(part.texts).map(column => isLost(quote(column)))
    return `UPDATE ${MARKS} SET state = iif(state = 'kept', 'outdated', 'being joined, outdated')
      WHERE name = '${name}' AND state IN ('kept', 'being joined') AND (${lost.join(' OR ')})
      AND EXISTS (SELECT 1${indexed('OLD')});`
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
    trigger('delete', 'DELETE', '', [change('OLD', true), noteLoss(column => `OLD.${column} <> ''`)]),
    trigger('update', `UPDATE OF ${watched.join(', ')}`, ` WHEN ${differs}`, [
      change('OLD', true),
      change('NEW', false),
      noteLoss(column => `(OLD.${column} <> '' AND OLD.${column} IS NOT NEW.${column})`),
    ]),
  ]
}

/**
 * Appended to each text, so that its last two characters begin trigrams too, and terms of one or two characters find
 * them.
 */
const END = '  '

function textsOf({ texts }: IndexedTable, columns: readonly string[], row: string): string[] {
  return columns.map(column =>
    texts[column] === undefined ? 'NULL' : `${row}.${quote(texts[column])} || '${END}'`,
  )
}

/** SQL that inserts in the order of the keys: FTS5 flushes its buffer whenever a key is smaller than the key before. */
function fill({ name, source, columns, parts }: Composition): string {
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

/** The cost of indexing a row without its text, expressed in bytes of text. */
const ROW_BYTES = 64

function weigh({ source, parts }: Composition): string {
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
  index({
    name: 'search_messages',
    source: 'messages',
    columns: ['subject', 'text'],
    parts: [{ table: 'messages', texts: { subject: 'subject', text: 'text' }, keyed: [], key: ownKey }],
  }),
  index({
    name: 'search_transcripts',
    source: 'transcript_entries',
    columns: ['text'],
    parts: [{ table: 'transcript_entries', texts: { text: 'text' }, keyed: [], key: ownKey }],
  }),
  index({
    name: 'search_meetings',
    source: 'meetings',
    columns: ['text', 'detail'],
    parts: MEETING_PARTS,
  }),
]
