import type { Fault } from '../../src/simulator/faults/faults.ts'
import { createSimulator } from '../../src/simulator/server.ts'
import type { Deed } from './deeds.ts'
import type { Life } from './life.ts'
import {
  answers,
  backfill,
  change,
  DAY,
  HOUR,
  life,
  look,
  MINUTE,
  nature,
  SECOND,
  WORKSPACE,
} from './scripted.ts'

const polls = (atMs: number, pollSeconds: number): Deed => ({ kind: 'reload', atMs, pollSeconds })

const [message = '', hidden = ''] = [
  ...createSimulator({ ...WORKSPACE, messages: 130 })
    .world.truth()
    .items('messages'),
].map(({ id }) => String(id))
const records = [...createSimulator(WORKSPACE).world.truth().items('crm_records')]
const recordOf = (object: string) => String(records.find(record => record['object'] === object)?.['id'])

const CRM = { resources: ['activities', 'crm_objects', 'crm_records'] } as const
const dealEdited = (atMs: number): Deed =>
  change(atMs, { kind: 'edit', resource: 'crm_records', object: 'deal', id: recordOf('deal') })

/** Items without a time, which no list with bounds of time shows. */
const timeless = (...ids: readonly string[]): readonly Fault[] => {
  const item = `\\{"id":"(?:${ids.join('|')})"[^]*?\\]\\}`
  return [
    { kind: 'rewrite', requestHas: 'received_', from: `${item},|,?${item}`, to: '' },
    { kind: 'rewrite', from: `("id":"(?:${ids.join('|')})".*?"received_at":)"[^"]*"`, to: '$1null' },
  ]
}

/**
 * Lives that fail today, each by a fault of the program that is known and not mended yet. The test expects them to fail
 * with these words: a mend removes its line, and its deed joins those that are drawn.
 */
export const KNOWN_FAILURES: readonly (readonly [fault: string, life: Life, said: RegExp])[] = [
  [
    'a row that only its single read shows stays deleted once that read has failed for a while',
    life(
      { resources: ['playbooks'] },
      change(HOUR, { kind: 'hide', resource: 'playbooks' }),
      answers(8 * HOUR, 40 * MINUTE, { kind: 'status', status: 404, route: '/v1/playbooks/{playbookId}' }),
      backfill(8 * HOUR + MINUTE),
      backfill(8 * HOUR + 20 * MINUTE),
      backfill(10 * HOUR),
    ),
    /playbooks .* is deleted, though the API answers for it/,
  ],
  [
    'a text that the share settings hide stays live for months',
    life(
      {
        resources: ['messages', 'message_bodies'],
        workspace: { ...WORKSPACE, messages: 6 },
        quietDays: 3,
      },
      nature(HOUR, {
        kind: 'rewrite',
        route: '/v2/messages/{messageId}',
        from: '"text":"(?:[^"\\\\]|\\\\.)*"',
        to: '"text":null',
      }),
      { kind: 'suspend', atMs: 2 * HOUR, forMs: 120 * DAY },
    ),
    /message_copies .*: text_state is "present", expected "empty"/,
  ],
  [
    'a replica that lags takes a record back, and the history tells of it',
    life(
      { ...CRM, pollSeconds: 300 },
      dealEdited(6 * HOUR - 20 * MINUTE),
      answers(6 * HOUR - 5 * MINUTE, 20 * MINUTE, {
        kind: 'lag',
        route: '/v2/objects/{object}/records',
        delayMs: HOUR,
      }),
      look(7 * HOUR),
    ),
    /crm_record_changes tells of .* of deal .* which has never happened/,
  ],
  [
    'the limit of one route stops the others',
    life(
      { resources: ['activities', 'meetings', 'transcripts'], pollSeconds: 300 },
      answers(0, 2 * HOUR, {
        kind: 'status',
        status: 429,
        retryAfter: 3600,
        route: '/v1/meetings/{meetingId}/transcript',
      }),
    ),
    /\/v2\/activities was not asked for 930 s/,
  ],
  [
    'all rows that are dated in the future are read at each poll',
    life(
      { resources: ['activities'], workspace: { ...WORKSPACE, messages: 500 }, pollSeconds: 300 },
      ...[1, 2, 3, 4, 5, 6, 7, 8].map(day =>
        change(0, {
          kind: 'edit',
          resource: 'activities',
          count: 60,
          at: Date.parse(`2026-08-0${day}T12:00:00Z`) * 1000,
        }),
      ),
    ),
    /\/v2\/activities was asked \d+ times on a day/,
  ],
  [
    'a crowd of rows at one instant in the future is read without a pause',
    life(
      { resources: ['activities'], workspace: { ...WORKSPACE, messages: 500 } },
      change(0, {
        kind: 'edit',
        resource: 'activities',
        count: 420,
        at: Date.parse('2026-08-30T12:00:00Z') * 1000,
      }),
    ),
    /\/v2\/activities was asked \d+ times on a day/,
  ],
  [
    'four answers that do not end keep the newest events from being read for a minute',
    life(
      { resources: ['messages', 'message_bodies'], pollSeconds: 1 },
      answers(0, 90 * SECOND, { kind: 'stall-in-body', route: '/v2/messages/{messageId}' }),
      polls(3 * MINUTE, 21_600),
    ),
    /\/v2\/messages was not asked for 60 s, with polls of 1 s/,
  ],
  [
    'a row without a time that appears later is never seen',
    life(
      { resources: ['messages'], workspace: { ...WORKSPACE, messages: 130 }, quietDays: 9 },
      nature(0, ...timeless(message, hidden)),
      {
        kind: 'change',
        change: { kind: 'hide', resource: 'messages', id: hidden },
        backMs: HOUR,
        atMs: 0,
      },
      { kind: 'suspend', atMs: DAY, forMs: 31 * DAY },
    ),
    /message_copies .* is missing, though messages is complete as of 2026-08/,
  ],
  [
    'e-mails whose times come and go have their texts read again at each poll',
    life(
      {
        resources: ['messages', 'message_bodies'],
        workspace: { ...WORKSPACE, messages: 130 },
        pollSeconds: 3600,
        quietDays: 2,
      },
      answers(30 * HOUR, 20 * HOUR, {
        kind: 'rewrite',
        from: '"received_at":"[^"]*"',
        to: '"received_at":null',
        probability: 0.3,
      }),
    ),
    /\/v2\/messages\/\{messageId\} was asked \d+ times on a day on which \d+ times were enough/,
  ],
]
