import { describe, expect, test } from 'vitest'
import { API_GATE, type Gate } from '../../src/store/sync/gates.ts'
import { META } from '../../src/store/sync/meta.ts'
import type { Segment } from '../../src/store/sync/segments.ts'
import { type TemporaryStore, temporaryStore } from './temporary-store.ts'

const MARCH = '2026-03-01T00:00:00.000Z'

const copy = (id: string, receivedAt: string | null) => ({
  id,
  header_message_id: `<${id}@example.com>`,
  received_at: receivedAt,
  participants: [],
})

const activity = (id: string, occurredAt: string | null) => ({
  id,
  type: 'call',
  source_type: 'MEETING',
  source_id: 'm',
  occurred_at: occurredAt,
  created_via: null,
  actor: null,
  links: [],
})

/** Two segments that meet in March. */
function halves(store: TemporaryStore, feed: 'messages.list' | 'activities.list'): void {
  store.db.prepare('DELETE FROM sync_segments WHERE feed = ?').run(feed)
  const all = store.segments.add({ feed, scope: '', from: null, to: null })
  store.segments.cut(all, MARCH)
}

const AT = ['2026-02-01T00:00:00Z', '2026-02-02T00:00:00Z', MARCH, '2026-03-02T00:00:00Z', null] as const

function coverageOf(store: TemporaryStore, resource: string): Record<string, unknown>[] {
  return store
    .all(
      `SELECT from_at, to_at, rows_live, bodies_present, bodies_pending FROM sync_coverage
       WHERE resource = '${resource}' ORDER BY to_at IS NOT NULL`,
    )
    .map(row => ({ ...row }))
}

describe('the rows of sync_coverage', () => {
  test('sync_coverage counts live rows in the segment of their time, and rows without a time in the oldest segment', () => {
    const store = temporaryStore()
    halves(store, 'activities.list')
    store.put(
      'activities',
      AT.map((at, index) => activity(`a${index}`, at)),
    )
    store.db.exec(`UPDATE activities SET _deleted_at = '${MARCH}' WHERE id IN ('a0', 'a3')`)
    expect(coverageOf(store, 'activities')).toEqual([
      { from_at: MARCH, to_at: null, rows_live: 1, bodies_present: null, bodies_pending: null },
      { from_at: null, to_at: MARCH, rows_live: 2, bodies_present: null, bodies_pending: null },
    ])
  })

  test('sync_coverage counts e-mails with and without their text in the same way', () => {
    const store = temporaryStore()
    halves(store, 'messages.list')
    store.put(
      'message_copies',
      AT.map((at, index) => copy(`c${index}`, at)),
    )
    store.db.exec(`UPDATE messages SET text_state = 'present' WHERE id IN ('c2', 'c4')`)
    store.db.exec(`UPDATE message_copies SET _deleted_at = '${MARCH}' WHERE id = 'c0'`)
    expect(coverageOf(store, 'messages')).toEqual([
      { from_at: MARCH, to_at: null, rows_live: 2, bodies_present: 1, bodies_pending: 1 },
      { from_at: null, to_at: MARCH, rows_live: 2, bodies_present: 1, bodies_pending: 2 },
    ])
  })

  test('sync_status ignores unavailable lists, and requires all others', () => {
    const store = temporaryStore()
    const list = (scope: string, cells: Partial<Segment>) => {
      const segment = store.segments.add({ feed: 'crm_records.list', scope, from: null, to: null })
      store.segments.save({ ...segment, ...cells })
    }
    const instants = () =>
      store.all("SELECT fresh_as_of, complete_as_of FROM sync_status WHERE resource = 'crm_records'")
    list('deal', { listedAt: MARCH })
    list('contact', { listedAt: '2026-03-02T00:00:00.000Z' })
    list('legacy_ticket', { unavailableSince: MARCH })
    expect(instants()).toEqual([{ fresh_as_of: MARCH, complete_as_of: MARCH }])
    list('company', {})
    expect(instants()).toEqual([{ fresh_as_of: null, complete_as_of: null }])
  })

  test.each([
    ['closed periods and an open one, by the open one', [true, true, false], '2026-03-01T00:30:00.000Z'],
    [
      'an open period that ended before it was read, by its end',
      [true, false, true],
      '2026-02-01T02:00:00.000Z',
    ],
    ['closed periods alone, by the end of the newest', [true, true, true], '2026-03-01T01:00:00.000Z'],
  ])('sync_coverage has the time as of which the access log is complete with %s', (_, closed, asOf) => {
    const store = temporaryStore()
    const instant = (day: string, time: string) => `2026-${day}T${time}:00.000Z`
    const periods = [
      [instant('01-01', '00:00'), instant('02-01', '00:00'), instant('02-01', '01:30')],
      [instant('02-01', '00:00'), instant('03-01', '00:00'), instant('02-01', '02:00')],
      [instant('03-01', '00:00'), instant('03-01', '01:00'), instant('03-01', '00:30')],
    ] as const
    periods.forEach(([from, to, listedAt], index) => {
      const period = store.segments.add({ feed: 'access_logs.log', scope: '', from, to })
      store.segments.save({ ...period, listedAt, closed: closed[index] === true })
    })
    const sql = "SELECT complete_as_of FROM sync_status WHERE resource = 'access_logs'"
    expect(store.column(sql)).toEqual([asOf])
    store.segments.add({ feed: 'access_logs.log', scope: '', from: null, to: periods[0][0] })
    expect(store.column(sql)).toEqual([null])
  })

  test('sync_status calls what has no list at most as complete as the rows that it is read for', () => {
    const store = temporaryStore()
    const [segment = store.segments.add({ feed: 'messages.list', scope: '', from: null, to: null })] =
      store.segments.of('messages.list')
    const listed = (listedAt: string | null) => store.segments.save({ ...segment, listedAt })
    const texts = () =>
      store.column("SELECT complete_as_of FROM sync_status WHERE resource = 'message_bodies'")[0]
    store.exec(`UPDATE sync_resources SET complete_as_of = '${MARCH}' WHERE resource = 'message_bodies'`)
    listed(null)
    expect(texts()).toBeNull()
    listed('2026-02-01T00:00:00.000Z')
    expect(texts()).toBe('2026-02-01T00:00:00.000Z')
    listed('2026-04-01T00:00:00.000Z')
    expect(texts()).toBe(MARCH)
    store.exec(`UPDATE sync_resources SET unavailable_since = '${MARCH}' WHERE resource = 'messages'`)
    listed(null)
    expect(texts()).toBe(MARCH)
  })

  test('a new period of the access log that was not read yet lacks nothing from before its start', () => {
    const store = temporaryStore()
    const [start, hour, next] = ['00:00', '01:00', '02:00'].map(time => `2026-03-01T${time}:00.000Z`)
    const period = store.segments.add({
      feed: 'access_logs.log',
      scope: '',
      from: start ?? null,
      to: hour ?? null,
    })
    store.segments.save({ ...period, listedAt: hour ?? null, closed: true })
    store.segments.add({ feed: 'access_logs.log', scope: '', from: hour ?? null, to: next ?? null })
    const asOf = () => store.column("SELECT complete_as_of FROM sync_status WHERE resource = 'access_logs'")
    expect(asOf()).toEqual([null])
    store.db.exec(`UPDATE sync_resources SET first_complete_at = '${hour}' WHERE resource = 'access_logs'`)
    expect(asOf()).toEqual([hour])
  })

  test('sync_coverage counts access-log entries without a time in the oldest period', () => {
    const store = temporaryStore()
    const [first, second, third] = ['2026-01-01', '2026-02-01', MARCH.slice(0, 10)].map(
      day => `${day}T00:00:00.000Z`,
    )
    for (const [from, to] of [
      [first, second],
      [second, third],
    ] as const) {
      store.segments.add({ feed: 'access_logs.log', scope: '', from: from ?? null, to: to ?? null })
    }
    for (const [id, at] of [
      ['x', null],
      ['y', second],
      ['z', '2026-02-10T00:00:00.000Z'],
    ]) {
      store.db
        .prepare('INSERT INTO access_logs (id, occurred_at, _first_seen_at, _synced_at) VALUES (?, ?, ?, ?)')
        .run(id, at, MARCH, MARCH)
    }
    expect(coverageOf(store, 'access_logs').map(({ from_at, rows_live }) => [from_at, rows_live])).toEqual(
      expect.arrayContaining([
        [first, 1],
        [second, 2],
      ]),
    )
  })
})

/** The tables that are large with a million messages. */
const LARGE = ['activities', 'message_copies', 'messages', 'crm_records', 'access_logs']

/** Steps of the query plan that read a large table and do not match `fine`. */
function slowSteps(store: TemporaryStore, query: string, fine: RegExp): string[] {
  return store
    .all(`EXPLAIN QUERY PLAN ${query}`)
    .map(({ detail }) => String(detail))
    .filter(step => LARGE.includes(/^(?:SCAN|SEARCH) (\w+)/.exec(step)?.[1] ?? '') && !fine.test(step))
}

const BY_AN_INDEX = /USING .*INDEX/
/** Reads an index alone, or deleted rows, which are few. */
const WITHOUT_A_ROW = /USING COVERING INDEX|USING INDEX \w+_deleted /

describe('the cost of the status views', () => {
  test('sync_status reads large tables only through an index', () => {
    expect(slowSteps(temporaryStore(), 'SELECT * FROM sync_status', BY_AN_INDEX)).toEqual([])
  })

  test('sync_coverage reads no live row of a large table', () => {
    expect(slowSteps(temporaryStore(), 'SELECT * FROM sync_coverage', WITHOUT_A_ROW)).toEqual([])
  })

  test('the test would notice a read of live rows', () => {
    const store = temporaryStore()
    const unindexed = "SELECT count(*) FROM activities WHERE created_via > ''"
    expect(slowSteps(store, unindexed, BY_AN_INDEX)).toHaveLength(1)
    expect(slowSteps(store, `${unindexed} AND occurred_at > ''`, WITHOUT_A_ROW)).toHaveLength(1)
  })

  test('the counts equal the number of live rows and of deleted ones', () => {
    const store = temporaryStore()
    store.put(
      'activities',
      AT.map((at, index) => activity(`a${index}`, at)),
    )
    store.put(
      'message_copies',
      AT.map((at, index) => copy(`c${index}`, at)),
    )
    store.db.exec("UPDATE activities SET _deleted_at = '2026-04-01T00:00:00.000Z' WHERE id = 'a1'")
    store.db.exec(`UPDATE messages SET text_state = 'present' WHERE id = 'c2'`)
    store.tasks.add({ feed: 'message_bodies.read', key: 'c9', dueAt: MARCH })
    const numbers = store.all(
      `SELECT resource, rows_live, rows_deleted, backfill_done, backfill_total, pending_tasks FROM sync_status
       WHERE resource IN ('activities', 'messages', 'message_bodies')`,
    )
    expect(numbers.map(row => Object.values(row))).toEqual([
      ['activities', 4, 1, 4, null, 0],
      ['messages', 5, 0, 5, null, 0],
      ['message_bodies', 1, 0, 1, 5, 5],
    ])
  })

  test('reads of what happened before sync.since are neither pending nor waited for', () => {
    const store = temporaryStore()
    store.put(
      'message_copies',
      AT.map((at, index) => copy(`c${index}`, at)),
    )
    const next = { round: 1, dueAt: MARCH, waiting: true }
    store.tasks.done({ feed: 'message_bodies.read', key: 'early' }, { ...next, sortAt: AT[0] })
    store.db.exec(`UPDATE sync_resources SET first_complete_at = '${MARCH}'`)
    const counts = () =>
      Object.values(
        store.all(
          `SELECT state, backfill_total, pending_tasks FROM sync_status WHERE resource = 'message_bodies'`,
        )[0] ?? {},
      )
    expect(counts()).toEqual(['waiting', 5, 6])
    store.state.setMeta(META.since, MARCH)
    expect(counts()).toEqual(['ok', 3, 3])
    store.tasks.done({ feed: 'message_bodies.read', key: 'late' }, { ...next, sortAt: MARCH })
    expect(counts()).toEqual(['waiting', 3, 4])
  })
})

describe('the rows of sync_status', () => {
  const AT = '2026-03-01T00:00:00.000Z'

  const transcripts = (store: TemporaryStore) =>
    store.all("SELECT state, reason FROM sync_status WHERE resource = 'transcripts'")[0]

  function complete(store: TemporaryStore): void {
    store.db.prepare('UPDATE sync_resources SET first_complete_at = ?').run(AT)
  }

  test('sync_status has a reason for every state but ok, and none for ok', () => {
    const store = temporaryStore()
    const SETS = ['failing_since', 'unavailable_since', 'first_complete_at', 'reason']
    const found = new Map<unknown, Set<boolean>>()
    for (let chosen = 0; chosen < 2 ** (SETS.length + 1); chosen += 1) {
      const isSet = (place: number) => (chosen >> place) % 2 === 1
      const cells = SETS.map((_, place) => (isSet(place) ? AT : null))
      store.db
        .prepare(`UPDATE sync_resources SET ${SETS.map(name => `${name} = ?`).join(', ')}`)
        .run(...cells)
      store.tasks.add({ feed: 'transcripts.read', key: 'm', dueAt: AT })
      store.db.prepare('UPDATE sync_tasks SET waiting = ?').run(isSet(SETS.length) ? 1 : 0)
      for (const { state, reason } of store.all('SELECT state, reason FROM sync_status')) {
        found.set(state, (found.get(state) ?? new Set()).add(reason !== null))
      }
    }
    expect(Object.fromEntries([...found].map(([state, has]) => [state, [...has]]))).toEqual({
      ok: [false],
      waiting: [true],
      backfilling: [true],
      unavailable: [true],
      failing: [true],
    })
  })

  test('a resource that the last run left out says so and what to do', () => {
    const store = temporaryStore()
    const reasonOf = (resource: string) =>
      store.all(`SELECT state, reason FROM sync_status WHERE resource = '${resource}'`)
    const unread = { state: 'backfilling', reason: 'Not completely read yet' }
    expect(reasonOf('members')).toEqual([unread])
    store.state.setMeta(META.chosenResources, '["teams"]')
    const reason = 'Left out by sync.resources, --only or --skip; choose it there to read it'
    // The list of their scopes has none, or no other, as long as they are left out.
    store.exec(
      `UPDATE sync_resources SET complete_as_of = '${AT}' WHERE resource IN ('crm_objects', 'collections')`,
    )
    for (const resource of ['crm_records', 'collection_meetings'])
      expect(reasonOf(resource)).toEqual([{ state: 'backfilling', reason }])
    expect(reasonOf('members')).toEqual([{ state: 'backfilling', reason }])
    expect(reasonOf('teams')).toEqual([unread])
    complete(store)
    expect(reasonOf('members')).toEqual([{ state: 'ok', reason }])
    store.state.setMeta(META.chosenResources, '["members"]')
    expect(reasonOf('members')).toEqual([{ state: 'ok', reason: null }])
  })

  test.each([
    ['silent', 'No request to the API has succeeded since'],
    ['refused', 'The API has refused access since'],
    ['asked-to-wait', 'The API has throttled requests since'],
    ['day-used-up', 'The requests of this day have been used up since'],
  ] as const)(
    'sync_status says of each unread resource that it is on hold, since the API is %s',
    (kind, sentence) => {
      const store = temporaryStore()
      complete(store)
      const until = new Date().toISOString()
      const time = until.slice(11, 19)
      const gate: Gate = {
        what: API_GATE,
        kind,
        reason: 'why',
        since: AT,
        until,
        resources: ['members'],
        tries: 0,
      }
      store.gates.set([gate])
      const stateOf = (resource: string) =>
        store.all(`SELECT state, reason FROM sync_status WHERE resource = '${resource}'`)
      expect(stateOf('members')).toEqual([
        { state: 'on hold', reason: `${sentence} 2026-03-01 00:00 UTC (why); next try at ${time} UTC` },
      ])
      expect(stateOf('teams')).toEqual([{ state: 'ok', reason: null }])
      store.gates.set([])
      expect(stateOf('members')).toEqual([{ state: 'ok', reason: null }])
    },
  )

  test('a gate of a list puts no resource on hold', () => {
    const store = temporaryStore()
    complete(store)
    const gate = { kind: 'failing', since: AT, until: AT, reason: 'why', tries: 5 } as const
    store.gates.set([{ ...gate, what: 'feed:transcripts.item', resources: ['transcripts'] }])
    expect(transcripts(store)).toMatchObject({ state: 'ok', reason: null })
  })

  test('sync_status names the route whose requests are throttled, unless the API cannot be read', () => {
    const store = temporaryStore()
    complete(store)
    const gate = {
      since: AT,
      until: AT,
      reason: 'why',
      resources: ['transcripts'],
      tries: 0,
    } satisfies Partial<Gate>
    const route: Gate = { ...gate, what: 'route:/v1/meetings/{meetingId}/transcript', kind: 'asked-to-wait' }
    const api: Gate = { ...gate, what: API_GATE, kind: 'silent' }
    store.gates.set([route])
    expect(transcripts(store)).toMatchObject({
      state: 'on hold',
      reason: expect.stringContaining(
        'The API has throttled requests for /v1/meetings/{meetingId}/transcript since 2026-03-01',
      ),
    })
    store.db.exec("UPDATE sync_gates SET resources = 'not json'")
    expect(transcripts(store)).toMatchObject({ state: 'ok' })
    expect(store.gates.closed()).toMatchObject([{ resources: [] }])
    store.gates.set([route, api])
    expect(transcripts(store)).toMatchObject({
      reason: expect.stringContaining('No request to the API has succeeded since'),
    })
  })

  test('sync_status counts what is not ready, and has no count once everything is ready', () => {
    const store = temporaryStore()
    complete(store)
    for (const key of ['a', 'b', 'c']) store.tasks.add({ feed: 'transcripts.read', key, dueAt: AT })
    store.db.exec("UPDATE sync_tasks SET waiting = key <> 'c', round = 1")
    expect(transcripts(store)).toEqual({
      state: 'waiting',
      reason: 'Not ready in the API yet: transcripts (2)',
    })
    store.db.exec('UPDATE sync_tasks SET waiting = 0')
    expect(transcripts(store)).toEqual({ state: 'ok', reason: null })
  })
})
