import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { ChangedResource } from '../../src/simulator/changes/change.ts'
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
  leftOut,
  life,
  look,
  MINUTE,
  nature,
  SECOND,
  WORKSPACE,
} from './scripted.ts'

/**
 * A fault put into a copy of the program on purpose. Its life has to find it, by `npm run test:long`. `npm test` only checks
 * that each fault still fits the program.
 */
export interface Mutant {
  /** What the program does wrong. */
  does: string
  life: Life
  /** Below `src/`. */
  file: string
  /** Occurs once in the file, and is replaced. */
  from: string
  to: string
}

const MANY = { ...WORKSPACE, messages: 130 }
const TEXTS = ['messages', 'message_bodies'] as const
const MEETINGS = ['activities', 'meetings', 'transcripts', 'playbook_results'] as const
const CRM = { resources: ['activities', 'crm_objects', 'crm_records'] } as const
const [member] = [...createSimulator(WORKSPACE).world.truth().items('members')].map(({ id }) => String(id))
const MESSAGE_ID = '"header_message_id":("[^"]*"|null)'
const NOT_A_MEMBER = '00000000-0000-4000-8000-000000000000'
const edited = (atMs: number, resource: ChangedResource) => change(atMs, { kind: 'edit', resource })

const [message = '', hidden = ''] = [
  ...createSimulator({ ...WORKSPACE, messages: 130 })
    .world.truth()
    .items('messages'),
].map(({ id }) => String(id))

/** Items without a time, which no list with bounds of time shows. */
const timeless = (...ids: readonly string[]): readonly Fault[] => {
  const item = `\\{"id":"(?:${ids.join('|')})"[^]*?\\]\\}`
  return [
    { kind: 'rewrite', requestHas: 'received_', from: `${item},|,?${item}`, to: '' },
    { kind: 'rewrite', from: `("id":"(?:${ids.join('|')})".*?"received_at":)"[^"]*"`, to: '$1null' },
  ]
}

/** By subject. Only faults that a user would notice in time: parts of the program that only save requests are not here. */
export const MUTANTS: readonly Mutant[] = [
  // What is wanted, and when
  {
    does: 'wants no single read for a row that a list shows for the first time',
    life: life({ resources: ['playbooks'] }),
    file: 'engine/modes/snapshot/page.ts',
    from: 'else tasks.name({ feed, key, sortAt, dueAt, unlessSince })',
    to: '',
  },
  {
    does: 'loses a request that is to be repeated',
    life: life({ resources: TEXTS }, answers(0, HOUR, { kind: 'status', probability: 0.5 })),
    file: 'engine/due/retries.ts',
    from: 'store.dueClock.after(ms)]',
    to: "'9999-12-31T00:00:00.000Z']",
  },
  {
    does: 'forgets that a key is in flight',
    life: life({ resources: TEXTS }, answers(0, HOUR, { kind: 'late', delayMs: 2000 })),
    file: 'engine/modes/single-reads.ts',
    from: 'for (const task of tasks) underWay.add(nameOf(task))',
    to: '',
  },
  {
    does: 'never asks again for what the API is still preparing',
    life: life(
      { resources: MEETINGS, quietDays: 3 },
      change(HOUR, { kind: 'publish', resource: 'meetings', unready: true }),
      change(2 * HOUR, { kind: 'completeTranscript', count: 9 }),
    ),
    file: 'engine/modes/items/item-handler.ts',
    from: 'readAgain(context, work, afterMs, { attempts, deadline, waiting: true })',
    to: 'context.store.tasks.remove(work.task)',
  },
  {
    does: 'reads a key again after a hundred times its interval',
    life: life(
      { resources: MEETINGS, quietDays: 1 },
      change(HOUR, { kind: 'publish', resource: 'meetings', unready: true }),
      change(20 * HOUR, { kind: 'completeTranscript', count: 9 }),
    ),
    file: 'engine/modes/items/item-handler.ts',
    from: 'dueAt: context.after(afterMs),',
    to: 'dueAt: context.after(100 * afterMs),',
  },
  {
    does: 'waits six days after a list has failed',
    life: life(
      { resources: ['members', 'teams'] },
      answers(5 * HOUR, 3 * HOUR, { kind: 'status', status: 400, route: '/v1/members' }),
    ),
    file: 'engine/modes/put-off.ts',
    from: '? store.dueClock.after(pageBackoffMs(attempts))',
    to: '? store.dueClock.after(6 * 86_400_000)',
  },
  {
    does: 'keeps due times that a fast clock has written',
    life: life(
      { resources: MEETINGS, quietDays: 8 },
      change(5 * HOUR, { kind: 'publish', resource: 'meetings', unready: true }),
      { kind: 'clock', atMs: 5.5 * HOUR, offMs: 40 * DAY, forMs: 4 * HOUR },
      change(10 * HOUR, { kind: 'completeTranscript', count: 9 }),
    ),
    file: 'store/sync/due-clock.ts',
    from: 'if (behindMs >= JUMP_MS)',
    to: 'if (behindMs >= Number.POSITIVE_INFINITY)',
  },
  {
    does: 'polls the newest events a tenth as often',
    life: life({ resources: TEXTS, pollSeconds: 3600 }),
    file: 'engine/due/by-time.ts',
    from: 'if (isHead(segment, server.now()) || segment.to === null) return pollMs',
    to: 'if (isHead(segment, server.now()) || segment.to === null) return 10 * pollMs',
  },
  {
    does: 'polls the newest events ten times as often',
    life: life({ resources: TEXTS, pollSeconds: 3600 }),
    file: 'engine/due/by-time.ts',
    from: 'if (isHead(segment, server.now()) || segment.to === null) return pollMs',
    to: 'if (isHead(segment, server.now()) || segment.to === null) return pollMs / 10',
  },
  {
    does: 'reads transcripts hourly, however old',
    life: life({ resources: MEETINGS, restDays: 2 }),
    file: 'engine/modes/items/item-handler.ts',
    from: 'return Math.max(rereadAfterMs(context, happenedAt), DAY_MS)',
    to: 'return HOUR_MS',
  },
  {
    does: 'reads no text a second time',
    life: life(
      {
        resources: TEXTS,
        workspace: { ...WORKSPACE, messages: 6 },
        pollSeconds: 21_600,
        quietDays: 3,
      },
      nature(HOUR, {
        kind: 'rewrite',
        route: '/v2/messages/{messageId}',
        from: '"text":"(?:[^"\\\\]|\\\\.)*"',
        to: '"text":null',
      }),
      ...Array.from(
        { length: 16 },
        (_, time): Deed => ({ kind: 'suspend', atMs: 2 * HOUR + time * 25 * 6 * HOUR, forMs: 6 * DAY }),
      ),
    ),
    file: 'engine/run/session.ts',
    from: 'return sweepTexts(context, deps.resources, deps.governor.state().ratePerSecond) || ended.length > 0',
    to: 'return ended.length > 0',
  },
  {
    does: 'never lists what has no time once it has listed it',
    life: life(
      { resources: TEXTS, workspace: MANY, quietDays: 9 },
      nature(0, ...timeless(message, hidden)),
      { kind: 'change', change: { kind: 'hide', resource: 'messages', id: hidden }, backMs: HOUR, atMs: 0 },
      { kind: 'suspend', atMs: DAY, forMs: 31 * DAY },
    ),
    file: 'engine/modes/timeline/timeline.ts',
    from: 'isUnboundedPassDue(context, list, asked) ? unboundedQuery(feed) : baseQuery(feed, asked)',
    to: 'baseQuery(feed, asked)',
  },
  {
    does: 'lets a route whose answers do not end have all requests in flight',
    life: life(
      { resources: TEXTS, pollSeconds: 1 },
      answers(0, 90 * SECOND, { kind: 'stall-in-body', route: '/v2/messages/{messageId}' }),
      { kind: 'reload', atMs: 3 * MINUTE, pollSeconds: 21_600 },
    ),
    file: 'engine/requests/route-slots.ts',
    from: 'return inFlight === 0 && unanswered() < Math.max(1, most() / 2)',
    to: 'return true',
  },
  {
    does: 'takes the limit of one route for a limit of all',
    life: life(
      { resources: ['activities', 'meetings', 'transcripts'], pollSeconds: 300 },
      answers(0, 2 * HOUR, {
        kind: 'status',
        status: 429,
        retryAfter: 3600,
        route: '/v1/meetings/{meetingId}/transcript',
      }),
    ),
    file: 'api/governor/route-limits.ts',
    from: "return limit?.isOwn ? 'route' : 'unknown'",
    to: "return 'api'",
  },
  {
    does: 'tries six times in a row, at each try, what has failed for hours',
    life: life(
      { resources: ['bot_definition', 'members'], quietDays: 2 },
      answers(30 * HOUR, 20 * HOUR, { kind: 'status', route: '/v1/bot-definition' }),
    ),
    file: 'engine/requests/attempts.ts',
    from: 'return attemptsOf({ isPart, hasFailed: schedule.isTimed && isFailing })',
    to: 'return attemptsOf({ isPart })',
  },
  {
    does: 'tries each part of a list that fails as a whole',
    life: life(
      { resources: ['activities'], workspace: MANY, quietDays: 2 },
      answers(6 * HOUR, 40 * HOUR, { kind: 'status', route: '/v2/activities' }),
    ),
    file: 'engine/modes/lists.ts',
    from: "if (isTimed && (count() > MOST_FAILURES[feed.mode] || backoffs.hasFailed(id, '')))\n        backoffs.failed(id, '')",
    to: '',
  },
  {
    does: 'reads whole lists twelve times as often',
    life: life({ resources: ['members'], restDays: 2 }),
    file: 'engine/context/intervals.ts',
    from: 'snapshot: 6 * HOUR_MS,',
    to: 'snapshot: HOUR_MS / 2,',
  },
  {
    does: 'does not follow a change that an event has told of',
    life: life({ ...CRM, pollSeconds: 1800 }, edited(HOUR, 'crm_records'), look(5 * HOUR)),
    file: 'engine/follow-ups/changed-records.ts',
    from: 'return mayBeLater ||',
    to: 'return',
  },
  {
    does: 'ends a backfill before its denials are confirmed',
    life: life(
      { resources: ['activities', ...TEXTS] },
      change(HOUR, { kind: 'delete', resource: 'messages', count: 2 }),
      backfill(HOUR + MINUTE),
    ),
    file: 'engine/deletions/recheck.ts',
    from: 'return ms === undefined ? undefined : Math.max(ms, 1)',
    to: 'return ms === undefined ? undefined : undefined',
  },
  {
    does: 'calls a backfill complete that could not read a list',
    life: life(
      { resources: ['members', 'teams'] },
      change(HOUR, { kind: 'publish', resource: 'members' }),
      nature(HOUR, { kind: 'status', status: 400, route: '/v1/members', atMost: 1 }),
      backfill(HOUR + MINUTE),
    ),
    file: 'engine/run/backfill.ts',
    from: "complete: ended.every(({ outcome }) => outcome === 'complete' || outcome === 'unavailable'),",
    to: "complete: ended.every(({ outcome }) => outcome !== 'stopped'),",
  },
  {
    does: "takes this machine's clock for the API's",
    life: life(
      { resources: TEXTS },
      { kind: 'clock', atMs: 0, offMs: 3 * HOUR, forMs: DAY },
      change(HOUR, { kind: 'publish', resource: 'messages' }),
      look(2 * HOUR),
    ),
    file: 'engine/context/server-clock.ts',
    from: 'const now = () => (known ? clock.elapsed() + known.least : clock.now())',
    to: 'const now = () => clock.now()',
  },
  // What a pass proves
  {
    does: 'ends a list after its first page',
    life: life({ resources: ['activities'], workspace: MANY }),
    file: 'api/paging.ts',
    from: 'return { items, next: more && cursor !== undefined ? { cursor } : null }',
    to: 'return { items, next: null }',
  },
  {
    does: 'leaves an hour between two spans of a list',
    life: life({ resources: ['activities'], workspace: MANY }),
    file: 'store/sync/segments.ts',
    from: '{ ...add({ ...segment, to: at }',
    to: '{ ...add({ ...segment, to: new Date(Date.parse(at) - 3_600_000).toISOString() }',
  },
  {
    does: 'commits the steps of a page one by one',
    life: life(
      { resources: TEXTS },
      // An e-mail is stored, its participants are not.
      { kind: 'kill', atMs: 0, statement: 1, withText: 'INSERT INTO message_participants', downMs: SECOND },
    ),
    file: 'store/database/transaction.ts',
    from: 'return runSome.immediate(batch)',
    to: `return batch.map(({ work }) => {
        try {
          return { value: work() }
        } catch (error) {
          return { error }
        }
      })`,
  },
  {
    does: 'closes a period of a log before it is settled',
    life: life(
      { resources: ['access_logs'], quietDays: 3 },
      answers(0, 2 * DAY, { kind: 'lag', delayMs: 3 * HOUR, route: '/v1/public-api-access-logs' }),
    ),
    file: 'engine/modes/periodic/page.ts',
    from: 'const closed = undated.ended(period) && isSettled',
    to: 'const closed = undated.ended(period)',
  },
  {
    does: 'takes keys of an earlier pass for those of this pass',
    life: life({ resources: ['members'] }, change(8 * HOUR, { kind: 'delete', resource: 'members' })),
    file: 'engine/modes/snapshot/pass-end.ts',
    from: 'while (store.seen.forget(feed, scope, KEYS_AT_ONCE)) yield',
    to: '',
  },
  // Deletions
  {
    does: 'deletes a row on the first denial',
    life: life(
      { resources: ['members'] },
      answers(5 * HOUR, 2 * HOUR, {
        kind: 'rewrite',
        route: '/v1/members',
        from: `"id":"${member}"`,
        to: `"id":"${NOT_A_MEMBER}"`,
        atMost: 1,
      }),
      look(6 * HOUR + 5 * MINUTE),
    ),
    file: 'engine/deletions/deletion-states.ts',
    from: 'if (isLongAgo && confirms) return',
    to: 'if (passed >= 0) return',
  },
  {
    does: 'takes two denials of one endpoint for a deletion',
    life: life({ resources: TEXTS }, ...leftOut('messages', '/v2/messages')),
    file: 'engine/modes/keys/probes.ts',
    from: 'const verdict = noteDenial(context, row, { confirms: false })',
    to: 'const verdict = noteDenial(context, row)',
  },
  {
    does: 'notices no row that a list lacks',
    life: life(
      { resources: ['activities'], workspace: { ...WORKSPACE, messages: 60 } },
      change(HOUR, { kind: 'delete', resource: 'activities', count: 3 }),
      backfill(2 * HOUR),
    ),
    file: 'engine/modes/timeline/page.ts',
    from: 'if (edge.reached === null && !edge.isEnd) return 0',
    to: 'if (edge !== undefined) return 0',
  },
  {
    does: 'notices no row that a whole list lacks',
    life: life({ resources: ['members'] }, change(HOUR, { kind: 'delete', resource: 'members' })),
    file: 'engine/modes/snapshot/pass-end.ts',
    from: 'if (!isPartial) {',
    to: 'if (isPartial === undefined) {',
  },
  {
    does: 'leaves the rows below a deleted row',
    life: life(
      { resources: MEETINGS },
      change(HOUR, { kind: 'delete', resource: 'meetings' }),
      backfill(2 * HOUR),
    ),
    file: 'store/rows/tombstones.ts',
    from: 'for (const cascade of table.cascades) apply(cascade, row, now, onCascade)',
    to: '',
  },
  {
    does: 'leaves a deleted row deleted when it comes back',
    life: life(
      { resources: ['members'], quietDays: 2 },
      change(HOUR, { kind: 'hide', resource: 'members' }, DAY),
    ),
    file: 'store/rows/payload-writer.ts',
    from: '_changed_at = coalesce(?, _changed_at), _deleted_at = NULL\n',
    to: '_changed_at = coalesce(?, _changed_at)\n',
  },
  {
    does: 'takes one empty text for the text',
    life: life(
      { resources: TEXTS },
      edited(HOUR, 'messages'),
      answers(HOUR, 10 * MINUTE, {
        kind: 'rewrite',
        route: '/v2/messages/{messageId}',
        from: '"text":"(?:[^"\\\\]|\\\\.)*"',
        to: '"text":null',
        atMost: 1,
      }),
      backfill(HOUR + MINUTE),
    ),
    file: 'engine/modes/items/message-body.ts',
    from: "else if (denyText(context, work, 'empty')) return",
    to: '',
  },
  // Ids and Message-IDs
  {
    does: 'stores ids in the case of the answer',
    life: life(
      { resources: ['activities'] },
      answers(HOUR, 2 * HOUR, { kind: 'upper-case' }),
      { kind: 'command', argv: ['resync', 'activities'], atMs: HOUR + MINUTE },
      backfill(4 * HOUR),
      backfill(5 * HOUR),
    ),
    file: 'base/uuid.ts',
    from: 'return isUuid(id) ? id.toLowerCase() : id',
    to: 'return id',
  },
  {
    does: 'takes e-mails with a blank Message-ID for one',
    life: life(
      { resources: TEXTS },
      nature(0, { kind: 'rewrite', from: MESSAGE_ID, to: '"header_message_id":" "' }),
    ),
    file: 'resources/messages.ts',
    from: "?? '').trim() ||",
    to: "?? '') ||",
  },
  {
    does: 'reads no text of a copy that has another sender',
    life: life(
      { resources: TEXTS },
      nature(0, { kind: 'rewrite', from: MESSAGE_ID, to: '"header_message_id":"<1>"' }),
    ),
    file: 'store/rows/merge/texts.ts',
    from: 'return ({ sender }) => sender !== undefined && sender !== first?.sender',
    to: 'return ({ sender }) => sender === first',
  },
  // Rows
  {
    does: 'takes a row with other values for the same',
    life: life({ resources: ['members'] }, edited(HOUR, 'members')),
    file: 'store/rows/payload-writer.ts',
    from: 'if (!hasOtherChildren && !hasOtherCells && !hasOtherFields && !deleted) return',
    to: 'if (!hasOtherChildren && !hasOtherFields && !deleted) return',
  },
  {
    does: 'tells of changes the wrong way round',
    life: life({ ...CRM, pollSeconds: 1800 }, edited(HOUR, 'crm_records'), look(5 * HOUR)),
    file: 'store/rows/write-items.ts',
    from: '[fieldsIn(before), fieldsIn(cells)]',
    to: '[fieldsIn(cells), fieldsIn(before)]',
  },
  {
    does: 'does not merge the copies of an e-mail again when one is deleted',
    life: life(
      { resources: TEXTS, workspace: { ...WORKSPACE, messages: 60 } },
      change(HOUR, { kind: 'delete', resource: 'messages', count: 20 }),
      backfill(2 * HOUR),
    ),
    file: 'store/rows/tombstones.ts',
    from: 'if (isMerged) merge.refresh(groups, now)',
    to: '',
  },
  {
    does: 'leaves a typed table as it was when a record is deleted',
    life: life(CRM, change(HOUR, { kind: 'delete', resource: 'crm_records' }), backfill(2 * HOUR)),
    file: 'store/crm/typed-rows.ts',
    from: 'OLD._deleted_at IS NOT NEW._deleted_at`',
    to: 'false`',
  },
  {
    does: 'adds no association that appears later',
    life: life(
      { resources: ['crm_objects', 'crm_records', 'crm_record_links'] },
      change(HOUR, { kind: 'publish', resource: 'crm_records' }),
      backfill(2 * HOUR),
    ),
    file: 'store/rows/links.ts',
    from: 'add: (otherId: string) => insert.run(...objects, id, otherId).changes,',
    to: 'add: () => 0,',
  },
]

const SOURCES = resolve(import.meta.dirname, '../../src')

/** The text of a mutant's file. @throws Error when the mutant does not fit the file any more */
export function mutatedFile({ does, file, from, to }: Mutant): string {
  const parts = readFileSync(join(SOURCES, file), 'utf8').split(from)
  if (parts.length !== 2)
    throw new Error(`${file} has ${parts.length - 1} places for the mutant that ${does}, expected 1`)
  return parts.join(to)
}
