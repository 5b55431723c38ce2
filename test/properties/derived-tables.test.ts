import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isoInstant } from '../../src/base/clock.ts'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { openAt, type TemporaryStore, withShortcuts } from '../store/temporary-store.ts'
import { putOwn } from '../store/unique-texts.ts'
import { derivedContent, forgetDerived } from '../support/derived-content.ts'
import { runs } from '../support/effort.ts'
import { reportsOf } from '../support/reports-of.ts'

/** Whatever is written, and wherever the process is killed, the derived tables become those of a full build. */

const NOW = '2026-03-01T00:00:00.000Z'
const id = fc.constantFrom('a', 'b', 'c', 'd')
const time = fc.constantFrom(
  '2026-01-05T23:30:00.000Z',
  '2026-01-06T10:00:00.000Z',
  '2026-01-06T10:00:00.000Z',
  '2026-02-20T10:00:00.000Z',
  '1900-01-01T00:00:00.000Z',
  null,
)
const address = fc.constantFrom(
  ...['ann@own.example', 'Bob@own.example', 'cat@theirs.example', 'dan@gmail.com', 'eve@partner.example'],
  ...['odd', ' '],
)
const name = fc.constantFrom('One', 'Two', null)
const record = fc.constantFrom('r1', 'r2')
const contact = fc.constantFrom('r1', 'r2', null)

const message = fc.record({
  id,
  header_message_id: fc.constantFrom('<1>', '<2>', '<3>', null),
  thread_id: fc.constantFrom('t1', 't2', 't3', null),
  subject: name,
  received_at: time,
  is_group_email: fc.constantFrom(true, false, false, null),
  participants: fc.array(
    fc.record({
      handle: address,
      role: fc.constantFrom('FROM', 'FROM', 'TO', 'CC'),
      display_name: name,
      contact_id: contact,
    }),
    { maxLength: 3 },
  ),
})
const activity = fc.record({
  id,
  source_type: fc.constantFrom('MESSAGE', 'MEETING'),
  source_id: id,
  occurred_at: time,
  links: fc.uniqueArray(
    fc.record({
      context_type: fc.constantFrom('deal', 'contact'),
      context_id: record,
      origin: fc.constantFrom('DIRECT', 'DERIVED'),
    }),
    { maxLength: 2, selector: link => JSON.stringify(link) },
  ),
})
const meeting = fc.record({
  meeting_id: id,
  title: name,
  start_time: time,
  meeting_owner: fc.record({ name, email: address }),
  attendees: fc.array(
    fc.record({
      attendee_user_name: name,
      attendee_user_email: fc.option(address),
      is_internal: fc.constantFrom(true, false, null),
      is_workspace_member: fc.constantFrom(true, false),
      contact_id: contact,
    }),
    { maxLength: 3 },
  ),
  speakers: fc.array(fc.record({ speaker_name: name, speaker_ratio: fc.constantFrom(0, 0.5, null) }), {
    maxLength: 2,
  }),
  related_objects: fc.array(fc.record({ object_type: fc.constant('deal'), object_id: record }), {
    maxLength: 2,
  }),
})

const result = fc.constantFrom({ state: 'present' as const, text: 'said' }, { state: 'gone' as const })

/** Writes to the store at an instant, each in one transaction. */
const WRITES = {
  messages: fc.array(message, { minLength: 1, maxLength: 3 }).map(rows => (store: TemporaryStore) => {
    store.put('message_copies', rows)
  }),
  text: fc.tuple(id, result).map(([copy, read]) => (store: TemporaryStore) => {
    store.atomically(() => store.merge.applyText(copy, read, NOW))
  }),
  activities: fc.array(activity, { minLength: 1, maxLength: 2 }).map(rows => (store: TemporaryStore) => {
    store.put('activities', rows)
  }),
  meeting: fc
    .tuple(meeting, fc.constantFrom('open', 'withheld'))
    .map(([fields, access]) => (store: TemporaryStore) => {
      const payload = { ...(resourceNamed('meetings').example['detail'] as object), ...fields }
      store.atomically(() => putOwn(store, { table: 'meetings', payload, own: { access }, now: NOW }))
    }),
  member: fc.tuple(id, address, name).map(([of, email, called]) => (store: TemporaryStore, now: string) => {
    store.put('members', [{ id: of, name: called, email }], { now })
  }),
  contact: fc
    .tuple(record, address, name, fc.constantFrom('co', null))
    .map(([of, email, called, company]) => (store: TemporaryStore) => {
      store.put(
        'crm_records',
        [{ id: of, object: 'contact', fields: { name: called, email, company_id: company } }],
        {
          requested: 'contact',
        },
      )
    }),
  company: fc
    .tuple(fc.constantFrom('co', 'other'), fc.constantFrom('theirs.example', 'gmail.com', null))
    .map(([of, website]) => (store: TemporaryStore) => {
      store.put('crm_records', [{ id: of, object: 'company', fields: { website } }], { requested: 'company' })
    }),
  deletion: fc
    .tuple(fc.constantFrom('message_copies', 'activities', 'meetings', 'members'), id)
    .map(([table, key]) => (store: TemporaryStore, now: string) => {
      store.atomically(() => store.tombstone(table, [[key]], now))
    }),
  recordDeletion: fc
    .tuple(fc.constantFrom('contact', 'company'), fc.constantFrom('r1', 'r2', 'co', 'other'))
    .map(([of, key]) => (store: TemporaryStore) => {
      store.atomically(() => store.tombstone('crm_records', [[of, key]], NOW))
    }),
  purge: fc.constant((store: TemporaryStore) => {
    store.atomically(() => store.purger.purge({ before: '9999', limit: 100, now: NOW }))
  }),
  filling: fc.constant(async (store: TemporaryStore) => store.crmTables.finish()),
}

const relation = { type: 'MANY_TO_ONE', target_object: 'company', target_resource: null }
const FIELDS = {
  contact: [
    { name: 'name', label: 'Name', type: 'TEXT', is_active: true },
    { name: 'email', label: 'Email', type: 'EMAIL', is_active: true },
    { name: 'company_id', label: 'Company', type: 'RELATION', is_active: true, relation },
  ],
  company: [{ name: 'website', label: 'Website', type: 'TEXT', is_active: true }],
}

const ENVS = [
  {},
  { PARLEY_REPORTING_TIME_ZONE: 'Asia/Tokyo' },
  { PARLEY_REPORTING_INTERNAL_DOMAINS: 'own.example' },
  { PARLEY_REPORTING_PARTNER_DOMAINS: 'partner.example', PARLEY_REPORTING_REPLY_LIMIT_DAYS: '1' },
]

const step = fc.oneof(
  { weight: 20, arbitrary: fc.oneof(...Object.values(WRITES)) },
  {
    weight: 4,
    arbitrary: fc.record({ env: fc.constantFrom(...ENVS), killAfter: fc.constantFrom(1, 2, 4, 99) }),
  },
  { weight: 1, arbitrary: fc.constant('start again' as const) },
)

const configOf = (env: Readonly<Record<string, string>>) =>
  loadSettings({ flags: {}, env, cwd: '/', requireApi: false }).settings

/** A store that is opened, and follows what has changed in a limited number of transactions, as a process that is killed after them. */
function opened(path: string, folder: string) {
  const store = withShortcuts(openAt(path), folder, path)
  store.db.pragma('synchronous = OFF')
  let left = 0
  const reports = reportsOf({
    ...store,
    now: NOW,
    attempt: work => {
      if (left === 0) throw new Error('killed')
      left -= 1
      return store.attempt(work)
    },
  })
  const update = async (env: Readonly<Record<string, string>>, most: number) => {
    left = most
    await reports.update(configOf(env)).catch(error => {
      if (left > 0) throw error
    })
  }
  return { store, update }
}

test('what is derived row by row is what a full build derives', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 10, maxLength: 60 }),
      fc.constantFrom(...ENVS),
      async (steps, env) => {
        const folder = mkdtempSync(join(tmpdir(), 'parley-derived-'))
        const path = join(folder, 'parley.db')
        let { store, update } = opened(path, folder)
        try {
          for (const [object, fields] of Object.entries(FIELDS))
            store.put('crm_objects', [{ name: object, label: object, fields, is_custom: false }], {
              requested: object,
            })
          await update({}, 99)
          for (const [at, take] of steps.entries()) {
            if (take === 'start again') {
              store.close()
              ;({ store, update } = opened(path, folder))
            } else if (typeof take === 'object') await update(take.env, take.killAfter)
            else await take(store, isoInstant(Date.parse(NOW) + at))
          }
          await update(env, 9999)
          const byRow = derivedContent(store.db)
          forgetDerived(store.db)
          await update(env, 9999)
          expect(byRow).toEqual(derivedContent(store.db))
        } finally {
          store.close()
          rmSync(folder, { recursive: true, force: true })
        }
      },
    ),
    { numRuns: runs(100) },
  )
})
