import { expect, test } from 'vitest'
import { DELETED_AT, only, type SmallWorkspace, smallWorkspace } from './small-workspace.ts'

const LATER = '2025-05-01T00:00:00.000Z'

type Stretch = readonly [from: string | null, to: string | null, listed?: string | null]

/** Every resource complete as of a later day, and these stretches of the access log. */
function readTo(stretches: readonly Stretch[]): SmallWorkspace {
  const workspace = smallWorkspace()
  const { db } = workspace.store
  db.exec('DELETE FROM sync_segments')
  const insert = db.prepare(
    'INSERT INTO sync_segments (feed, scope, from_at, to_at, listed_at) VALUES (?, ?, ?, ?, ?)',
  )
  for (const [from, to, listed = LATER] of stretches) insert.run('access_logs.log', '', from, to, listed)
  for (const feed of ['activities.list', 'messages.list', 'meetings.list'])
    insert.run(feed, '', null, null, LATER)
  const told =
    'INSERT INTO sync_resources (resource, complete_as_of, first_complete_at) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET complete_as_of = ?, first_complete_at = ?'
  for (const name of ['activities', 'messages', 'access_logs', 'meetings', 'transcripts', 'playbook_results'])
    db.prepare(told).run(name, LATER, LATER, LATER, LATER)
  return workspace
}

const verdict = async (workspace: SmallWorkspace, resource: string) =>
  (await workspace.ask('coverage-of-a-month')).find(row => row['resource'] === resource)?.['complete']

test.each<[string, string, readonly Stretch[]]>([
  ['yes', 'one stretch has the month', [['2025-03-01', '2025-07-01']]],
  [
    'yes',
    'stretches meet',
    [
      ['2025-03-01', '2025-04-10'],
      ['2025-04-10', '2025-04-20'],
      ['2025-04-20', null],
    ],
  ],
  [
    'yes',
    'a short stretch lies within a long one',
    [
      [null, '2025-04-20'],
      ['2025-04-02', '2025-04-03'],
      ['2025-04-20', null],
    ],
  ],
  [
    'no: not all of it was asked for',
    'there is a hole in the month',
    [
      ['2025-03-01', '2025-04-10'],
      ['2025-04-11', null],
    ],
  ],
  ['no: not all of it was asked for', 'its first day is missing', [['2025-04-02', null]]],
  [
    'no: not all of it was asked for',
    'nothing touches the month',
    [
      ['2025-05-01', null],
      [null, '2025-04-01'],
    ],
  ],
  [
    'no: not yet read to its end',
    'a stretch was not listed',
    [
      [null, '2025-04-10'],
      ['2025-04-10', null, null],
    ],
  ],
  ['no: it was not over when it was read', 'it ends too early', [[null, '2025-04-30']]],
  [
    'no: it was not over when it was read',
    'one was listed in it',
    [
      [null, '2025-04-10'],
      ['2025-04-10', null, '2025-04-30T23:59:59.999Z'],
    ],
  ],
])('a month is reported as %s where %s', async (expected, _, stretches) => {
  expect(await verdict(readTo(stretches), 'access_logs')).toBe(expected)
})

test('a meeting whose detail was not read makes its month incomplete, or any month when its time is unknown', async () => {
  const workspace = readTo([])
  const meeting = (id: string, at: string | null, access: string | null, state: string) => {
    workspace.store.put('meetings', [{ meeting_id: id, title: id, start_time: at }])
    workspace.store.db
      .prepare('UPDATE meetings SET access = ?, transcript_state = ? WHERE id = ?')
      .run(access, state, id)
  }
  const told = () =>
    Promise.all(['meetings', 'transcripts', 'playbook_results'].map(resource => verdict(workspace, resource)))
  meeting('other month', '2025-05-01T00:00:00Z', null, 'pending')
  meeting('withheld', null, 'withheld', 'pending')
  meeting('read', '2025-04-30T23:00:00Z', 'open', 'empty')
  expect(await told()).toEqual(['yes', 'yes', 'yes'])
  const missing = 'no: details or texts are still to be read'
  meeting('no transcript', '2025-04-30T23:00:00Z', 'open', 'pending')
  expect(await told()).toEqual(['yes', missing, 'yes'])
  workspace.tombstone('meetings', 'no transcript')
  expect(await told()).toEqual(['yes', 'yes', 'yes'])
  meeting('no detail', null, null, 'pending')
  expect(await told()).toEqual([missing, missing, missing])
})

test.each([
  ['2025-04-01T00:00:00.000Z', 'yes'],
  ['2025-04-02T00:00:00.000Z', 'no: not all of it was asked for'],
  ['2025-05-01T00:00:00.000Z', 'no: not all of it was asked for'],
])('of the meetings of April, with sync.since at %s, the answer is %s', async (since, expected) => {
  const workspace = readTo([])
  const { db } = workspace.store
  db.exec(`UPDATE sync_segments SET from_at = '${since}' WHERE feed = 'activities.list';
    INSERT INTO sync_segments (feed, scope, to_at) VALUES ('activities.list', '', '${since}')`)
  for (const resource of ['meetings', 'transcripts', 'playbook_results'])
    expect(await verdict(workspace, resource)).toBe(expected)
})

test.each([
  ['2025-04-01T00:00:00.000Z', 'yes'],
  ['2025-04-02T00:00:00.000Z', 'no: not all of it was asked for'],
  ['2025-05-01T00:00:00.000Z', 'no: not all of it was asked for'],
])('of activities and e-mails of April, with sync.since at %s, the answer is %s', async (since, expected) => {
  for (const resource of ['activities', 'messages']) {
    const workspace = readTo([])
    workspace.store.db.exec(`UPDATE sync_segments SET from_at = '${since}' WHERE feed = '${resource}.list';
      INSERT INTO sync_segments (feed, scope, to_at) VALUES ('${resource}.list', '', '${since}')`)
    expect(await verdict(workspace, resource)).toBe(expected)
  }
})

test('while the first read goes on, what is not listed yet is still to be read', async () => {
  const workspace = readTo([])
  workspace.store.db.exec(`UPDATE sync_segments SET from_at = '2025-04-02' WHERE feed = 'messages.list';
    INSERT INTO sync_segments (feed, scope, to_at) VALUES ('messages.list', '', '2025-04-02');
    UPDATE sync_resources SET first_complete_at = NULL WHERE resource = 'messages'`)
  expect(await verdict(workspace, 'messages')).toBe('no: not yet read to its end')
})

/** This workspace reads activities alone. */
const LEFT_OUT = 'Left out by sync.resources, --only or --skip; choose it there to read it'

test('failing resources come first, then loading ones, then those never read, each with the oldest first', async () => {
  const workspace = readTo([])
  const { db } = workspace.store
  db.exec(`DELETE FROM sync_segments;
    UPDATE sync_resources SET first_complete_at = '${LATER}', fresh_as_of = '2025-04-30T23:00:00.000Z', complete_as_of = NULL;
    UPDATE sync_resources SET failing_since = '${LATER}', reason = 'why' WHERE resource = 'messages';
    UPDATE sync_resources SET unavailable_since = '${LATER}' WHERE resource = 'access_logs';
    UPDATE sync_resources SET first_complete_at = NULL, fresh_as_of = NULL WHERE resource = 'activities';
    UPDATE sync_resources SET fresh_as_of = NULL WHERE resource = 'transcripts';
    UPDATE sync_resources SET fresh_as_of = '2025-04-30T22:00:00.000Z' WHERE resource = 'playbook_results'`)
  const asked = await workspace.ask('freshness')
  const placed = asked.filter(({ resource }) =>
    ['messages', 'activities', 'transcripts', 'playbook_results', 'meetings', 'access_logs'].includes(
      `${resource}`,
    ),
  )
  expect(only(placed, 'resource', 'state', 'reason')).toEqual([
    { resource: 'messages', state: 'failing', reason: 'why' },
    { resource: 'activities', state: 'backfilling', reason: 'Not completely read yet' },
    { resource: 'transcripts', state: 'ok', reason: LEFT_OUT },
    { resource: 'playbook_results', state: 'ok', reason: LEFT_OUT },
    { resource: 'meetings', state: 'ok', reason: LEFT_OUT },
    {
      resource: 'access_logs',
      state: 'unavailable',

      reason: 'This workspace does not offer it',
    },
  ])
})

test('deleted rows are those that existed before, of every kind, and meetings that were withheld since', async () => {
  const workspace = smallWorkspace()
  const { store } = workspace
  workspace.members({ id: 'm', name: 'Aiko', email: null }, { id: 'here', name: 'Ben', email: null })
  store.put('teams', [{ id: 't', name: 'Sales', member_ids: [] }])
  store.put('collections', [{ id: 'c', name: 'Best calls' }])
  store.put('crm_objects', [{ name: 'deal', label: 'Deal', fields: [] }], { requested: 'deal' })
  workspace.records('deal', [{ id: 'd', name: 'A deal' }])
  const mail = { header: '<1>', at: '2025-03-01T00:00:00Z', people: [], subject: 'Offer' }
  workspace.mail({ id: 'copy 1', ...mail })
  workspace.mail({ id: 'copy 2', ...mail })
  workspace.mail({ id: 'left', ...mail, header: '<2>' })
  workspace.mail({ id: 'stays', ...mail, header: '<2>' })
  for (const id of ['gone', 'withheld', 'never open', 'both'])
    workspace.meeting({ id, at: '2025-03-01T00:00:00Z' })
  const later = DELETED_AT
  store.db.exec(`UPDATE meetings SET access = 'withheld' WHERE id <> 'gone';
    UPDATE meetings SET _changed_at = '${later}' WHERE id IN ('withheld', 'both')`)
  for (const [table, ...key] of [
    ['members', 'm'],
    ['teams', 't'],
    ['collections', 'c'],
    ['crm_objects', 'deal'],
    ['crm_records', 'deal', 'd'],
    ['message_copies', 'copy 1'],
    ['message_copies', 'copy 2'],
    ['message_copies', 'left'],
    ['meetings', 'gone'],
    ['meetings', 'both'],
  ])
    workspace.tombstone(table ?? '', ...key)
  const found = [
    ['CRM object', 'Deal', 'deal'],
    ['collection', 'Best calls', 'c'],
    ['deal', null, 'd'],
    ['e-mail', 'Offer', 'copy 2'],
    ['meeting', 'both', 'both'],
    ['meeting', 'gone', 'gone'],
    ['meeting, withheld', 'withheld', 'withheld'],
    ['member', 'Aiko', 'm'],
    ['team', 'Sales', 't'],
  ].map(([what, name, id]) => ({ found_out: DELETED_AT, what, name, id }))
  expect(await workspace.ask('withdrawn-this-month')).toEqual(found)
  expect(await workspace.ask('withdrawn-this-month', { period: "'last month'" })).toEqual([])
})

test('the use of a key leaves out requests that the log did not capture', async () => {
  const workspace = smallWorkspace()
  const insert = workspace.store.db.prepare(
    `INSERT INTO access_logs (id, occurred_at, operation, duration_ms, response_size_bytes, status_code, api_key_suffix,
       _first_seen_at, _synced_at) VALUES (?, ?, ?, ?, ?, ?, ?, '', '')`,
  )
  const entries: [ms: number | null, status: number | null, suffix: string | null][] = [
    [40, 200, 'a1b2'],
    [10, 399, 'a1b2'],
    [30, 400, 'a1b2'],
    [20, 500, 'a1b2'],
    [null, null, 'a1b2'],
    [null, 499, null],
  ]
  for (const [place, [ms, status, suffix]] of entries.entries()) {
    const at = `2025-04-21T00:0${place}:00.000Z`
    insert.run(`${place}`, at, `Operation ${place % 2}`, ms, ms === null ? null : 500_000, status, suffix)
  }
  expect(await workspace.ask('api-use-by-key')).toEqual([
    {
      key_suffix: 'a1b2',
      requests: 5,
      refused_4xx: 1,
      failed_5xx: 1,
      megabytes: 2,
      median_ms: 20,
      p95_ms: 40,
      operations: 2,
      first_request: '2025-04-21T00:00:00.000Z',
      last_request: '2025-04-21T00:04:00.000Z',
    },
    {
      key_suffix: 'not recorded',
      requests: 1,
      refused_4xx: 1,
      failed_5xx: 0,
      megabytes: null,
      median_ms: null,
      p95_ms: null,
      operations: 1,
      first_request: '2025-04-21T00:05:00.000Z',
      last_request: '2025-04-21T00:05:00.000Z',
    },
  ])
})
