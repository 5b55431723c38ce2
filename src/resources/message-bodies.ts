import { resource } from '../declare/resource.ts'

export const messageBodiesResource = resource({
  name: 'message_bodies',
  about:
    'The text of each e-mail; its copies are read in canonical order until one has a text, past those whose read fails, and all copies of other senders',
  area: 'mail',
  parents: ['messages'],
  readAgainWith: 'messages',
  tables: [],
  feeds: {
    read: {
      mode: 'item',
      read: { path: '/v2/messages/{key}', placement: 'bare', identity: 'id' },
      stores: 'body',
      table: 'message_copies',
      pending: {
        table: 'message_copies',
        key: 'id',
        where: '_text_due = 1 AND _deleted_at IS NULL',
        time: 'received_at',
        afterListOf: 'messages',
        mayChange: "text_state = 'present' AND _deleted_at IS NULL",
      },
      everyRound: false,
      boundBySince: true,
      expected: { 404: 'absent' },
    },
  },
  isSearched: true,
  status: {
    table: 'messages',
    where: "text_state = 'present'",
    newest: 'received_at',
    pending: "text_state = 'pending'",
    waitsFor: 'texts',
    byState: { state: 'text_state', rows: 'e-mails', part: 'text' },
  },
  example: {
    read: {
      id: '5d1c7f8e-2b1a-4f0c-8d3e-9a0b1c2d3e4f',
      header_message_id: '<CAF1=abc@mail.example.com>',
      thread_id: 'thr_1',
      subject: 'お見積りの件',
      received_at: '2026-03-04T05:06:07.123Z',
      is_internal: false,
      is_group_email: false,
      participants: [],
      text: 'Dear Sam, …',
    },
  },
})
