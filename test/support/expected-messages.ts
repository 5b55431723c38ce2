import { type Fields, fieldsOf, listOf } from './exact-json.ts'
import type { ExpectedTable } from './expected.ts'
import { groupedBy } from './grouped-by.ts'
import { type Cell, type OneOf, type Row, rowOf, shape } from './row-shape.ts'

const COPY = shape(
  'id header_message_id thread_id subject received_at:instant is_internal:boolean is_group_email:boolean',
)
const PARTICIPANT = shape('role handle display_name contact_id')

interface Copy {
  row: Row
  text: string | null
  participants: readonly Row[]
}

/** Every copy, and the merged e-mails. The order in which the copies came does not matter. */
export function expectedMessages(messages: readonly Fields[]): ExpectedTable[] {
  const mails = groupedBy(messages.map(copyOf), ({ row }) => mailKey(row))
  for (const copies of mails.values()) copies.sort(canonically)
  const all = [...mails.values()]
  return [
    {
      table: 'message_copies',
      key: ['id'],
      json: [],
      optional: [],
      rows: all.flatMap(copies =>
        copies.map((copy, place) => ({
          ...copy.row,
          mail_id: mailKey(copy.row),
          ...ownText(copies, place),
        })),
      ),
    },
    {
      table: 'message_copy_participants',
      key: ['message_id', 'position'],
      json: [],
      optional: [],
      parent: { table: 'message_copies', on: { message_id: 'id' } },
      rows: all.flatMap(copies =>
        copies.flatMap(({ row, participants }) =>
          participants.map((each, position) => ({ message_id: plain(row['id']), position, ...each })),
        ),
      ),
    },
    {
      table: 'messages',
      key: ['header_message_id'],
      json: [],
      optional: [],
      rows: [...mails].map(([key, copies]) => merged(key, copies)),
    },
    {
      table: 'message_participants',
      key: ['header_message_id', 'role', 'handle'],
      json: [],
      optional: [],
      parent: { table: 'messages', on: { header_message_id: 'header_message_id' } },
      rows: [...mails].flatMap(([key, copies]) => union(key, copies)),
    },
  ]
}

function copyOf(payload: Fields): Copy {
  return {
    row: rowOf({ shape: COPY, payload, elsewhere: ['participants', 'text'] }),
    text: typeof payload['text'] === 'string' ? payload['text'] : null,
    participants: listOf(payload['participants']).map(each =>
      rowOf({ shape: PARTICIPANT, payload: fieldsOf(each) }),
    ),
  }
}

const plain = (cell: Cell | OneOf | undefined): Cell =>
  cell === undefined || (typeof cell === 'object' && cell !== null) ? null : cell

/** A blank or missing header id never merges two messages. */
function mailKey(row: Row): string {
  const header = String(plain(row['header_message_id']) ?? '').replaceAll(/^\s+|\s+$/g, '')
  return header === '' ? `id:${row['id']}` : header
}

/** Earliest first, then smallest id. */
function canonically({ row: a }: Copy, { row: b }: Copy): number {
  const place = ({ received_at, id }: Row): string => `${received_at ?? '~'} ${id}`
  return place(a) < place(b) ? -1 : 1
}

/**
 * The copies of the sender are read until one has a text; later ones may have been read or not. A copy of another
 * sender is always read and has its text itself.
 */
function ownText(copies: readonly Copy[], place: number): Row {
  const text = copies[place]?.text ?? null
  const own = text === null ? 'empty' : 'present'
  const [sender] = copies.map(senderOf).filter(each => each !== '')
  const isOfSender = (copy: Copy | undefined) => [undefined, '', sender].includes(copy && senderOf(copy))
  if (!isOfSender(copies[place])) return { text, text_state: own }
  const giver = copies.findIndex(copy => copy.text !== null && isOfSender(copy))
  return { text: null, text_state: giver >= 0 && place > giver ? { oneOf: ['pending', own] } : own }
}

/** The address, or all of them, after FROM. */
function senderOf({ participants }: Copy): string {
  const from = participants.filter(({ role }) => role === 'FROM')
  const handles = from.map(({ handle }) =>
    String(plain(handle) ?? '')
      .toLowerCase()
      .trim(),
  )
  return handles
    .filter((handle, place) => handle !== '' && handles.indexOf(handle) === place)
    .sort()
    .join(' ')
}

const MERGED = ['thread_id', 'subject', 'is_internal', 'is_group_email'] as const

function merged(key: string, copies: readonly Copy[]): Row {
  const first = (pick: (copy: Copy) => Cell): Cell => copies.map(pick).find(cell => cell !== null) ?? null
  const [sender] = copies.map(senderOf).filter(each => each !== '')
  const text = first(copy => (['', sender].includes(senderOf(copy)) ? copy.text : null))
  return {
    header_message_id: key,
    id: plain(copies[0]?.row['id']),
    copy_count: copies.length,
    received_at: plain(copies[0]?.row['received_at']),
    ...Object.fromEntries(MERGED.map(column => [column, first(({ row }) => plain(row[column]))])),
    text,
    text_state: text === null ? 'empty' : 'present',
  }
}

function union(key: string, copies: readonly Copy[]): Row[] {
  const every = copies.flatMap(({ participants }) => participants)
  const groups = groupedBy(
    every.filter(({ role, handle }) => role !== null && handle !== null),
    ({ role, handle }) => JSON.stringify([role, handle]),
  )
  return [...groups.values()].map(same => {
    const first = (column: string): Cell => plain(same.find(row => plain(row[column]) !== null)?.[column])
    return {
      header_message_id: key,
      role: first('role'),
      handle: first('handle'),
      display_name: first('display_name'),
      contact_id: first('contact_id'),
    }
  })
}
