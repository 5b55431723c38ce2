import { resource } from '../declare/resource.ts'
import {
  boolean,
  child,
  derived,
  entity,
  id,
  link,
  oneOf,
  own,
  parent,
  position,
  text,
  timestamp,
} from '../declare/table.ts'

const ROLES = ['FROM', 'TO', 'CC', 'BCC']

const COPY_TEXT_STATES = {
  pending: 'not read; final when another copy gave the text',
  present: '',
  empty: 'read, and null',
  gone: '404',
}

/** States of an e-mail without a text. */
const NO_TEXT_STATES = { pending: '', empty: 'hidden or really empty', gone: '' }

const NEVER = 'It does not occur.'
const NO_COPY = 'No copy has a value.'

const participants = child('message_copy_participants', {
  content: true,
  about: 'Senders and recipients of each copy, in the order of the API: FROM, TO, CC, BCC, then by address.',
  list: 'participants',
  key: ['message_id', 'position'],
  columns: {
    message_id: parent('id', 'text', 'Copy (`message_copies.id`).'),
    position: position(),
    role: text(`${oneOf(ROLES)}.`, { values: ROLES }),
    handle: text('E-mail address.'),
    display_name: text('Name as written in the e-mail.'),
    contact_id: id('CRM contact (`crm_records.id`).', {
      nullMeans: 'The API gave no contact.',
      refersTo: ['crm_records.id'],
      example: 'e4c3a8d6-2fa0-4179-9d5c-70913c4d5e6f',
    }),
  },
})

const messageCopies = entity('message_copies', {
  about:
    'Every copy of every e-mail: one for each mailbox that it was imported from. The text is in `messages`, that of a copy with another sender in `text`.',
  key: ['id'],
  storage: 'rowid',
  columns: {
    id: id("The API's message id; `activities.source_id` of a MESSAGE activity points here."),
    header_message_id: text(
      'RFC 5322 Message-ID as sent by the API; may be NULL or blank. Join `messages` by `mail_id`.',
    ),
    thread_id: id('Thread: e-mails of one conversation have the same id.', {
      nullMeans: 'The API could not obtain it.',
    }),
    subject: text('Subject line.', {
      content: true,
      nullMeans: 'The share settings hide it, or it is empty. The API does not state which.',
    }),
    received_at: timestamp('When the e-mail was sent or received.'),
    is_internal: boolean('1 when every FROM, TO and CC is a member.'),
    is_group_email: boolean('1 for mailing lists and group addresses.'),
    text_state: own(
      'text',
      `State of the text of this copy: ${oneOf(COPY_TEXT_STATES)}. For the e-mail use \`messages.text_state\`.`,
      {
        values: Object.keys(COPY_TEXT_STATES),
        notNull: true,
        default: "'pending'",
        example: 'present',
        whenPurged: "'pending'",
      },
    ),
    // Most e-mails have one copy, so 1 is the default. The merge sets NULL where another copy is read first.
    _text_due: own('integer', 'Internal: 1 while the text of this copy is to be read next.', {
      default: '1',
      nullMeans: 'The text of this copy is not to be read next.',
      example: '1',
    }),
    // A copy without a Message-ID is never merged with another.
    mail_id: derived(
      'text',
      'E-mail that this is a copy of (`messages.header_message_id`): `header_message_id` without blanks at its ends, or `id:` followed by the copy’s id where that leaves nothing.',
      cell => String(cell('header_message_id') ?? '').trim() || `id:${cell('id')}`,
      {
        nullMeans: NEVER,
        refersTo: ['messages.header_message_id'],
        resolves: true,
        example: '<CAF1=abc@mail.example.com>',
      },
    ),
    text: own(
      'text',
      'Full plain text of a copy whose sender is not that of its e-mail, or of a deleted copy that had the text of its e-mail.',
      {
        content: true,
        nullMeans:
          'The text is in `messages`, since the copy has the sender of its e-mail or none; or `text_state` says why.',
        apiField: 'text',
        example: 'Dear Sam, …',
      },
    ),
  },
  indices: {
    by_mail: { on: ['mail_id'] },
    by_thread: { on: ['thread_id'] },
    by_time: { on: ['received_at DESC', '_deleted_at'] },
    text_due: { on: ['received_at DESC'], where: '_text_due = 1' },
  },
  children: [participants],
  feedFields: ['text'],
  mergesExtra: true,
})

const messages = entity('messages', {
  about: 'One row per e-mail: its live copies merged.',
  key: ['header_message_id'],
  storage: 'rowid',
  columns: {
    header_message_id: own(
      'text',
      'RFC 5322 Message-ID, or `id:` followed by the message id where it has none.',
      {
        apiField: 'header_message_id',
        example: '<CAF1=abc@mail.example.com>',
      },
    ),
    id: own('text', 'Id of the canonical copy: earliest `received_at`, then smallest id.', {
      hasIds: true,
      nullMeans: NEVER,
      refersTo: ['message_copies.id'],
      resolves: true,
      apiField: 'id',
      example: '5d1c7f8e-2b1a-4f0c-8d3e-9a0b1c2d3e4f',
    }),
    copy_count: own('integer', 'Number of live copies.', { unit: 'copies', nullMeans: NEVER, example: '2' }),
    thread_id: own('text', 'Thread: e-mails of one conversation have the same id.', {
      hasIds: true,
      nullMeans: NO_COPY,
      apiField: 'thread_id',
      example: 'thr_1',
    }),
    subject: own('text', 'Subject of the first copy that has one.', {
      content: true,
      nullMeans: 'The share settings hide it in every copy, or it is empty. The API does not state which.',
      apiField: 'subject',
      example: 'お見積りの件',
    }),
    received_at: own('timestamp', 'When the e-mail was sent or received.', {
      nullMeans: NO_COPY,
      apiField: 'received_at',
      example: '2026-03-04T05:06:07.123Z',
    }),
    is_internal: own('boolean', '1 when every FROM, TO and CC is a member.', {
      nullMeans: NO_COPY,
      apiField: 'is_internal',
      example: '0',
    }),
    is_group_email: own('boolean', '1 for mailing lists and group addresses.', {
      nullMeans: NO_COPY,
      apiField: 'is_group_email',
      example: '0',
    }),
    text: own(
      'text',
      'Full plain text of the first copy that has one, of those with the sender of the e-mail.',
      {
        content: true,
        nullMeans: '`text_state` says why.',
        apiField: 'text',
        example: 'Dear Sam, …',
      },
    ),
    text_state: own(
      'text',
      `\`present\` when the text is known, otherwise the state of the canonical copy: ${oneOf(NO_TEXT_STATES)}.`,
      {
        values: ['present', ...Object.keys(NO_TEXT_STATES)],
        nullMeans: NEVER,
        example: 'present',
        whenPurged: "'pending'",
      },
    ),
    _text_from: own('integer', 'Internal: rowid of the copy that the text was read from.', {
      nullMeans: 'No text is known.',
      example: '17',
      whenPurged: 'NULL',
    }),
  },
  indices: {
    // A covering index for the counts of sync_status and sync_coverage, which must not read a million texts.
    by_time: { on: ['received_at DESC', 'text_state', '_deleted_at'] },
    by_thread: { on: ['thread_id', 'received_at'] },
  },
})

const messageParticipants = link('message_participants', {
  content: true,
  about:
    'Senders and recipients of each live e-mail: the union of its live copies by role and address. Those of a deleted e-mail are only in `message_copy_participants`.',
  key: ['header_message_id', 'role', 'handle'],
  livesWith: { table: 'messages', on: { header_message_id: 'header_message_id' } },
  columns: {
    header_message_id: own('text', 'E-mail (`messages.header_message_id`).', {
      refersTo: ['messages.header_message_id'],
      apiField: 'header_message_id',
      example: '<CAF1=abc@mail.example.com>',
    }),
    role: own('text', `${oneOf(ROLES)}.`, {
      values: ROLES,
      apiField: 'participants[].role',
      example: 'FROM',
    }),
    handle: own('text', 'E-mail address.', {
      apiField: 'participants[].handle',
      example: 'aiko@example.com',
    }),
    display_name: own('text', 'Name from the first copy that has one.', {
      nullMeans: 'No copy has a name.',
      apiField: 'participants[].display_name',
      example: 'Aiko Tanaka',
    }),
    contact_id: own('text', 'CRM contact (`crm_records.id`) from the first copy that has one.', {
      hasIds: true,
      nullMeans: 'No copy has a contact.',
      refersTo: ['crm_records.id'],
      apiField: 'participants[].contact_id',
      example: 'e4c3a8d6-2fa0-4179-9d5c-70913c4d5e6f',
    }),
  },
})

export const messagesResource = resource({
  name: 'messages',
  about: 'E-mails: every copy, and one merged row per e-mail',
  area: 'mail',
  parents: [],
  tables: [messageCopies, messages, messageParticipants],
  feeds: {
    list: {
      mode: 'timeline',
      list: { path: '/v2/messages', paging: 'v2-cursor' },
      table: 'message_copies',
      time: 'received_at',
      bounds: { from: 'received_from', to: 'received_to' },
      evidence: {
        by: 'ids',
        path: '/v2/messages',
        read: { path: '/v2/messages/{key}', placement: 'bare', identity: 'id' },
      },
      lookup: {
        resource: 'activities',
        table: 'activities',
        column: 'source_id',
        where: "source_type = 'MESSAGE'",
      },
      followUps: [
        {
          on: ['changed'],
          unlessOnly: ['received_at'],
          when: { text_state: ['present', 'empty', 'gone'] },
          feed: 'message_bodies.read',
          key: 'id',
          sort: 'received_at',
          how: 'demand',
        },
      ],
    },
  },
  isSearched: true,
  status: { table: 'messages', newest: 'received_at' },
  example: {
    list: {
      id: '5d1c7f8e-2b1a-4f0c-8d3e-9a0b1c2d3e4f',
      header_message_id: '<CAF1=abc@mail.example.com>',
      thread_id: 'thr_1',
      subject: 'お見積りの件',
      received_at: '2026-03-04T14:06:07.123456+09:00',
      is_internal: false,
      is_group_email: false,
      participants: [
        { handle: 'aiko@example.com', display_name: 'Aiko Tanaka', role: 'FROM', contact_id: null },
        {
          handle: 'sam@customer.example',
          display_name: null,
          role: 'TO',
          contact_id: 'e4c3a8d6-2fa0-4179-9d5c-70913c4d5e6f',
        },
      ],
    },
  },
})
