import { quote } from '../database/sql.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'

/**
 * The keys of rows that have changed since the derived tables last followed them. Temporary triggers of the writer's
 * connection add them in the transaction of the change, so a kill loses none.
 */

/** In the order in which they are followed: following one kind of keys adds only keys of later kinds. */
export const KEY_KINDS = {
  contact: 1,
  company: 2,
  mail: 3,
  meeting: 4,
  /** An address. */
  person: 5,
  party: 6,
  /** `conversations._id`, when its people have changed. */
  conversation: 7,
  /** `conversations._id` of an e-mail, when its threads may have changed. */
  thread: 8,
  /** `record_activity._id`. */
  record: 9,
} as const

export type KeyKind = keyof typeof KEY_KINDS

type WaitingKey = string | number

export type WaitingKeys = ReturnType<typeof createWaitingKeys>

export function createWaitingKeys(prepare: Prepare) {
  const insert = (kind: KeyKind, select: string) =>
    prepare(`INSERT OR IGNORE INTO _waiting_keys (kind, key) ${of(kind, select)}`)
  /** @param select SQL after SELECT that returns keys of the kind for the values in the JSON array `:keys` */
  const addFrom = (kind: KeyKind, select: string, keys: readonly (WaitingKey | null)[]) => {
    if (keys.length > 0) insert(kind, select).run({ keys: JSON.stringify(keys) })
  }
  return {
    addFrom,
    isAny: () => prepare('SELECT 1 FROM _waiting_keys LIMIT 1').get() !== undefined,
    add: (kind: KeyKind, keys: readonly (WaitingKey | null)[]) =>
      addFrom(kind, 'value FROM json_each(:keys) WHERE value IS NOT NULL', keys),
    /** The first keys of the first kind that has any. @param most how many keys of a kind at most */
    next(most: (kind: KeyKind) => number): { kind: KeyKind; keys: WaitingKey[] } | undefined {
      const first = prepare<number>('SELECT min(kind) FROM _waiting_keys').pluck().get()
      const kind = (Object.keys(KEY_KINDS) as KeyKind[]).find(name => KEY_KINDS[name] === first)
      if (kind === undefined) return undefined
      const keys: WaitingKey[] = []
      const waiting = prepare<WaitingKey>('SELECT key FROM _waiting_keys WHERE kind = ? ORDER BY key').pluck()
      for (const key of waiting.iterate(first)) if (keys.push(key) === most(kind)) break
      return { kind, keys }
    },
    done(kind: KeyKind, keys: readonly WaitingKey[]) {
      prepare('DELETE FROM _waiting_keys WHERE kind = ? AND key IN (SELECT value FROM json_each(?))').run(
        KEY_KINDS[kind],
        JSON.stringify(keys),
      )
    },
    /** Adds all keys of these kinds: those of source rows and those of derived rows. */
    addAll(kinds: readonly KeyKind[]) {
      for (const kind of kinds) for (const select of ALL[kind]) insert(kind, select).run()
    },
    /** Adds the conversations that were outside of the calendar or are outside of these days. */
    addOutside(firstDay: string, lastDay: string) {
      for (const kind of ['mail', 'meeting'] as const)
        insert(
          kind,
          `conversation_id FROM conversations WHERE kind = '${kind}'
            AND ((day IS NULL AND happened_at IS NOT NULL) OR day < ? OR day > ?)`,
        ).run(firstDay, lastDay)
    },
    /** Adds the records of conversations after a day. */
    addAfter(day: string) {
      insert(
        'record',
        `r.record FROM conversations c CROSS JOIN _record_conversations r ON r.conversation = c._id
          WHERE c.happened_at > (SELECT utc_from FROM calendar WHERE day = ?)`,
      ).run(day)
    },
  }
}

const of = (kind: KeyKind, select: string) => `SELECT ${KEY_KINDS[kind]}, ${select}`

const ofObject = (role: 'contact' | 'company') =>
  `id FROM crm_records WHERE object = (SELECT value FROM report_settings WHERE name = 'crm.${role}.object')`

const ALL: Readonly<Record<KeyKind, readonly string[]>> = {
  contact: [ofObject('contact'), 'contact_id FROM _contact_addresses'],
  company: [ofObject('company'), 'company_id FROM _company_domains'],
  mail: ['header_message_id FROM messages', "conversation_id FROM conversations WHERE kind = 'mail'"],
  meeting: ['id FROM meetings', "conversation_id FROM conversations WHERE kind = 'meeting'"],
  person: [
    "lower(trim(email)) FROM member_versions WHERE trim(email) <> ''",
    'person_id FROM people',
    'address FROM _former_addresses',
  ],
  party: ['id FROM members', 'party_id FROM parties'],
  conversation: ['_id FROM conversations'],
  thread: ["_id FROM conversations WHERE kind = 'mail'"],
  record: ['_id FROM record_activity'],
}

type TriggerRow = 'NEW' | 'OLD'

/** A table whose changes are followed, with SQL for the keys that a changed row adds. */
interface FollowedTable {
  table: string
  /** An update of other columns adds no keys. Undefined: every update adds keys. */
  columns?: readonly string[]
  keys(row: TriggerRow): readonly string[]
}

const sourceOf = (activity: string): string[] => [
  of(
    'mail',
    `k.mail_id FROM message_copies k WHERE k.id = ${activity}.source_id AND ${activity}.source_type = 'MESSAGE' AND k.mail_id IS NOT NULL`,
  ),
  of(
    'meeting',
    `${activity}.source_id WHERE ${activity}.source_type = 'MEETING' AND ${activity}.source_id IS NOT NULL`,
  ),
]

/** In these meetings a speaker's name may become that of one person, or of two. */
const meetingsWithOtherAddress = (version: string): string =>
  `c.conversation_id FROM people p CROSS JOIN member_versions v ON v.member_id = ${version}.member_id
    CROSS JOIN people o ON o.person_id = lower(trim(v.email)) AND o._id <> p._id
    CROSS JOIN _conversation_people y ON y.person = o._id
    CROSS JOIN _conversation_people x ON x.conversation = y.conversation AND x.person = p._id
    CROSS JOIN conversations c ON c._id = y.conversation AND c.kind = 'meeting'
    WHERE p.person_id = lower(trim(${version}.email))`

const ownedBy = (kind: KeyKind, table: string, column: string): FollowedTable => ({
  table,
  keys: row => [of(kind, `${row}.${column}`)],
})

const SOURCES: readonly FollowedTable[] = [
  {
    table: 'messages',
    columns: ['header_message_id', 'subject', 'received_at', 'is_group_email', 'text_state', '_deleted_at'],
    keys: row => [of('mail', `${row}.header_message_id`)],
  },
  {
    table: 'message_copies',
    columns: ['id', 'mail_id', 'thread_id', '_deleted_at'],
    keys: row => [of('mail', `${row}.mail_id WHERE ${row}.mail_id IS NOT NULL`)],
  },
  ownedBy('mail', 'message_participants', 'header_message_id'),
  {
    table: 'activities',
    columns: ['id', 'source_type', 'source_id', 'occurred_at', '_deleted_at'],
    keys: sourceOf,
  },
  {
    table: 'activity_links',
    keys: row => [
      of(
        'mail',
        `k.mail_id FROM activities a JOIN message_copies k ON k.id = a.source_id WHERE a.id = ${row}.activity_id AND a.source_type = 'MESSAGE' AND k.mail_id IS NOT NULL`,
      ),
      of(
        'meeting',
        `a.source_id FROM activities a WHERE a.id = ${row}.activity_id AND a.source_type = 'MEETING' AND a.source_id IS NOT NULL`,
      ),
    ],
  },
  {
    table: 'meetings',
    columns: ['id', 'title', 'start_time', 'end_time', 'owner_email', 'owner_name', 'access', '_deleted_at'],
    keys: row => [of('meeting', `${row}.id`)],
  },
  ownedBy('meeting', 'meeting_attendees', 'meeting_id'),
  ownedBy('meeting', 'meeting_speakers', 'meeting_id'),
  ownedBy('meeting', 'meeting_related_objects', 'meeting_id'),
  {
    table: 'members',
    columns: ['id', 'name', '_deleted_at'],
    keys: row => [
      of(
        'person',
        `lower(trim(v.email)) FROM member_versions v WHERE v.member_id = ${row}.id AND trim(v.email) <> ''`,
      ),
      of('party', `${row}.id`),
    ],
  },
  {
    table: 'member_versions',
    columns: ['email', 'to_at', 'is_member'],
    keys: row => [
      of('person', `lower(trim(${row}.email)) WHERE trim(${row}.email) <> ''`),
      of('meeting', meetingsWithOtherAddress(row)),
    ],
  },
  {
    table: 'crm_records',
    columns: ['object', 'id', 'fields', '_deleted_at'],
    keys: row =>
      (['contact', 'company'] as const).map(role =>
        of(
          role,
          `${row}.id WHERE ${row}.object = (SELECT value FROM report_settings WHERE name = 'crm.${role}.object')`,
        ),
      ),
  },
]

export const waitingKeys = (db: Sqlite): number =>
  onlyRow(db.prepare<unknown[], number>('SELECT count(*) FROM _waiting_keys').pluck())

/** Creates the triggers unless this connection has them. */
export function followChanges(db: Sqlite): void {
  const names = db.prepare<unknown[], string>(
    "SELECT name FROM sqlite_temp_master WHERE name LIKE 'waiting_key_%'",
  )
  if (names.pluck().get() !== undefined) return
  db.exec(SOURCES.flatMap(triggersOf).join(';\n'))
}

function triggersOf({ table, columns, keys }: FollowedTable): string[] {
  const cells = (row: TriggerRow) => (columns ?? []).map(column => `${row}.${quote(column)}`).join(', ')
  const differ = columns ? ` WHEN (${cells('OLD')}) IS NOT (${cells('NEW')})` : ''
  const update = columns ? `UPDATE OF ${columns.map(quote).join(', ')}` : 'UPDATE'
  const trigger = (name: string, event: string, when: string, rows: readonly TriggerRow[]) => {
    const adds = rows
      .flatMap(keys)
      // OR IGNORE would be overridden by the conflict clause of the statement that fires the trigger.
      .map(select => `INSERT INTO _waiting_keys SELECT * FROM (${select}) WHERE true ON CONFLICT DO NOTHING;`)
    return `CREATE TEMP TRIGGER waiting_key_${table}_${name} AFTER ${event} ON main.${quote(table)}${when} BEGIN ${adds.join(' ')} END`
  }
  return [
    trigger('insert', 'INSERT', '', ['NEW']),
    trigger('delete', 'DELETE', '', ['OLD']),
    trigger('update', update, differ, ['OLD', 'NEW']),
  ]
}
