import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NUDGE_KINDS, type Nudge, readNudge } from '../../src/server/nudge.ts'
import { runs } from '../support/effort.ts'

const NOTHING: Nudge = { kind: 'unknown', meetings: [], playbooks: [], records: [], activities: false }

describe('the kind of a webhook', () => {
  test.each([
    ['meeting.completed.beta', 'meeting.completed.beta', true],
    ['playbook.generated.beta', 'playbook.generated.beta', false],
    ['playbook.updated.beta', 'playbook.updated.beta', false],
    ['meeting.crm_integrations.created.beta', 'meeting.crm_integrations.created.beta', true],
    ['record.activity_link.created.beta', 'record.activity_link.*', true],
    ['record.activity_link.anything', 'record.activity_link.*', true],
    ['meeting.completed', 'meeting.completed.beta', true],
    ['meeting.completed.gamma', 'unknown', false],
    ['record.activity_links.created', 'unknown', false],
    ['', 'unknown', false],
  ])('the kind of %j is %s, and whether it makes the activities due is %s', (type, kind, activities) => {
    expect(readNudge({ type })).toEqual({ ...NOTHING, kind, activities })
  })

  test.each([
    [{ type: 'playbook.updated.beta' }],
    [{ event: 'playbook.updated.beta' }],
    [{ event_type: 'playbook.updated.beta' }],
    [{ eventType: 'playbook.updated.beta' }],
    [{ name: 'playbook.updated.beta' }],
    [{ id: 'evt_1', object: 'event', type: 'playbook.updated.beta' }],
    [{ type: 'webhook', data: { type: 'playbook.updated.beta' } }],
    [{ payload: { event_name: 'playbook.updated.beta' } }],
    [{ event: { name: 'playbook.updated.beta' } }],
  ])('the kind is found in %j', body => {
    expect(readNudge(body)).toEqual({ ...NOTHING, kind: 'playbook.updated.beta' })
  })

  test.each([[null], [7], ['meeting.completed.beta'], [[]], [{}], [{ type: 7 }], [{ type: ['playbook'] }]])(
    'the kind of %j is unknown',
    body => {
      expect(readNudge(body)).toEqual(NOTHING)
    },
  )

  test('the name of a property that every object has is not a kind', () => {
    expect(readNudge(JSON.parse('{"__proto__": {"type": "meeting.completed.beta"}}')).kind).toBe('unknown')
  })
})

describe('the ids in a webhook', () => {
  const company = { object: 'company', id: 'c1' }
  const cases: [what: string, body: unknown, found: Partial<Nudge>][] = [
    ['a meeting_id', { meeting_id: 'm1' }, { meetings: ['m1'] }],
    ['a meetingId', { data: { meetingId: 'm1' } }, { meetings: ['m1'] }],
    ['the id of a meeting', { data: { meeting: { id: 'm1' } } }, { meetings: ['m1'] }],
    ['ids of meetings', { meeting_ids: ['m1', 'm2', 'm1'] }, { meetings: ['m1', 'm2'] }],
    ['meetings in a list', { meetings: [{ id: 'm1' }, { meeting_id: 'm2' }] }, { meetings: ['m1', 'm2'] }],
    ['a playbook_id', { playbook_id: 'p1' }, { playbooks: ['p1'] }],
    ['the id of a playbook', { playbook: { id: 'p1', name: 'BANT' } }, { playbooks: ['p1'] }],
    [
      'related objects',
      {
        related_objects: [
          { object_type: 'company', object_id: 'c1', fields: { company_ids: ['c2'] } },
          { object_type: 'CONTACT', object_id: 'k1' },
          { object_type: 'meeting', object_id: 'm1' },
        ],
      },
      {
        meetings: ['m1'],
        records: [company, { object: 'contact', id: 'k1' }, { object: 'company', id: 'c2' }],
      },
    ],
    [
      'an activity link',
      { data: { activity_id: 'a1', link: { context_type: 'deal', context_id: 'd1', origin: 'DIRECT' } } },
      { records: [{ object: 'deal', id: 'd1' }], activities: true },
    ],
    [
      'an activity',
      { activity: { id: 'a1', source_type: 'MEETING', source_id: 'm1' } },
      { meetings: ['m1'], activities: true },
    ],
    ['the source of a message', { source_type: 'MESSAGE', source_id: 'e1' }, { activities: true }],
    ['a CRM record', { data: { record: { id: 'c1', object: 'company' } } }, { records: [company] }],
    [
      'a record of an object of its own',
      { record_id: 'r1', object: 'renewal' },
      { records: [{ object: 'renewal', id: 'r1' }] },
    ],
    ['the same record twice', { company_id: 'c1', company: { id: 'c1' } }, { records: [company] }],
    ['an id that belongs to the webhook', { id: 'evt_1', object: 'event' }, {}],
    ['an id at the very top, whatever it is of', { id: 'evt_1', object: 'notification' }, {}],
    ['an id in another CRM', { crm_integrations: [{ record_id: 'x', record_object_type: 'Account' }] }, {}],
    [
      'ids of people and teams',
      { object_type: 'member', object_id: 'u1', team_id: 't1', user: { id: 'u' } },
      {},
    ],
    ['an object name that is none', { object_type: 'a/b', object_id: 'x1' }, {}],
    ['an id that is no text', { meeting_id: 7, playbook_id: null, deal_id: { id: 'd1' } }, {}],
    ['an empty id', { meeting_id: '' }, {}],
    ['an id with a line break', { meeting_id: 'a\nb' }, {}],
    ['an id with a space', { meeting_id: 'a b' }, {}],
    ['an id of 200 characters', { meeting_id: 'x'.repeat(200) }, { meetings: ['x'.repeat(200)] }],
    ['an id of 201 characters', { meeting_id: 'x'.repeat(201) }, {}],
  ]
  test.each(cases)('%s yields the expected ids', (_, body, found) => {
    expect(readNudge(body)).toEqual({ ...NOTHING, ...found })
  })

  test('a bare id in the payload of a meeting event is that of the meeting', () => {
    expect(readNudge({ id: 'evt', type: 'meeting.completed.beta', data: { id: 'm1' } }).meetings).toEqual([
      'm1',
    ])
    expect(readNudge({ id: 'evt', type: 'playbook.updated.beta', data: { id: 'x' } }).playbooks).toEqual([])
  })

  test('at most 100 ids are taken, those nearest to the top first', () => {
    const nudge = readNudge({
      deep: { company_ids: Array.from({ length: 90 }, (_, at) => `c${at}`) },
      meeting_ids: Array.from({ length: 60 }, (_, at) => `m${at}`),
      playbook_id: 'p1',
    })
    expect(nudge.playbooks).toEqual(['p1'])
    expect(nudge.meetings).toHaveLength(60)
    expect(nudge.records).toHaveLength(39)
  })

  test('ids are searched down to ten levels', () => {
    const nested = (levels: number): unknown =>
      levels === 0 ? { meeting_id: 'm1' } : { inner: nested(levels - 1) }
    expect(readNudge(nested(9)).meetings).toEqual(['m1'])
    expect(readNudge(nested(10)).meetings).toEqual([])
    expect(readNudge(nested(5_000)).meetings).toEqual([])
  })

  test('ids are searched among at most 5,000 values', () => {
    const among = (values: number) => [...Array.from({ length: values }, () => 0), { meeting_id: 'm1' }]
    expect(readNudge(among(4_900)).meetings).toEqual(['m1'])
    expect(readNudge(among(5_000)).meetings).toEqual([])
    expect(readNudge([among(2_000), among(2_000)]).meetings).toEqual(['m1'])
    expect(readNudge([among(2_600).slice(0, -1), among(2_600)]).meetings).toEqual([])
  })
})

/** Random JSON in which the relevant names and values are frequent. */
const names = fc.constantFrom(
  ...['meeting_id', 'meeting', 'meetings', 'id', 'object', 'object_id', 'object_type', 'context_id'],
  ...[
    'context_type',
    'company_ids',
    'type',
    'event',
    'data',
    'payload',
    '__proto__',
    'constructor',
    'toString',
  ],
)
const { hint } = fc.letrec(tie => ({
  hint: fc.oneof(
    { maxDepth: 6, depthSize: 'small' },
    fc.oneof(
      fc.string(),
      fc.uuid(),
      fc.constantFrom(...NUDGE_KINDS, 'deal', 'MEETING', 'constructor'),
      fc.jsonValue(),
    ),
    fc.array(tie('hint'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(names, fc.string()), tie('hint'), { maxKeys: 6 }),
  ),
}))

test('any JSON is read without an error, and yields only ids that it has, within the limits', () => {
  fc.assert(
    fc.property(hint, body => {
      const text = JSON.stringify(body)
      const nudge = readNudge(JSON.parse(text))
      const ids = [...nudge.meetings, ...nudge.playbooks, ...nudge.records.map(({ id }) => id)]
      expect(NUDGE_KINDS).toContain(nudge.kind)
      expect(ids.length).toBeLessThanOrEqual(100)
      for (const id of ids) {
        expect(id).toMatch(/^[\x21-\x7e]{1,200}$/)
        expect(text).toContain(JSON.stringify(id))
      }
      for (const { object } of nudge.records) expect(text.toLowerCase()).toContain(object)
      expect(new Set(nudge.records.map(({ object, id }) => `${object} ${id}`)).size).toBe(
        nudge.records.length,
      )
    }),
    { numRuns: runs(2_000) },
  )
})

test('an id next to its type is found at any place', () => {
  const at = fc.array(fc.oneof(fc.constant('list'), fc.stringMatching(/^[a-z]{1,8}$/)), { maxLength: 8 })
  const id = fc.stringMatching(/^[\x21-\x7e]{1,200}$/)
  fc.assert(
    fc.property(at, id, (path, deal) => {
      const body = path.reduce<unknown>(
        (inner, name) => (name === 'list' ? [0, inner] : { [name]: inner, other: 'x' }),
        { context_type: 'deal', context_id: deal },
      )
      expect(readNudge(body).records).toEqual([{ object: 'deal', id: deal }])
    }),
  )
})
