import { beforeAll, describe, expect, test } from 'vitest'
import { METRICS } from '../../../src/dictionary/metrics.ts'
import { openSqlite } from '../../../src/store/database/sqlite.ts'
import { compareWarehouse } from '../../support/compare.ts'
import { expectedWarehouse } from '../../support/expected.ts'
import type { Truth } from '../../support/truth.ts'
import { questionNamed, withParameters } from '../question-file.ts'
import { dayOf, fiscalQuarterOf, mondayOf, workingHoursBetween } from './local-time.ts'
import { metricValues } from './metric-values.ts'
import { isCustomer, peopleOf } from './people.ts'
import type { AnswerRow } from './question.ts'
import { QUESTIONS } from './questions.ts'
import { type CompanySettings, SETTINGS } from './settings.ts'
import { type FirstWeek, firstWeek, worldAgain } from './world.ts'
import type { Mail, World } from './world-rows.ts'

/** Columns in which this world has nothing but NULL or 0; the rules for them hold all the same. */
const EMPTY_HERE: Readonly<Record<string, readonly string[]>> = {
  'win-rate': ['outcome_unknown'],
  'crm-quality': ['without_next_step'],
  'account-health': ['withheld'],
  'talk-ratio-by-member': ['without_share'],
}

let week: FirstWeek
let again: World

beforeAll(async () => {
  week = await firstWeek()
  again = await worldAgain(week.world.formerMembers)
})

const answerTo = (name: string, world: World = week.world): readonly AnswerRow[] => {
  const question = QUESTIONS.find(each => each.name === name)
  if (!question) throw new RangeError(`no question is named ${name}`)
  return question.answer(world)
}

const total = (rows: readonly AnswerRow[], column: string): number =>
  rows.reduce((sum, row) => sum + Number(row[column]), 0)

test('the questions have different names', () => {
  expect(new Set(QUESTIONS.map(({ name }) => name)).size).toBe(QUESTIONS.length)
})

describe.each(QUESTIONS)('$name', question => {
  test('the question has a name in kebab-case and a meaning', () => {
    expect(question.name).toMatch(/^[a-z]+(-[a-z]+)+$/)
    expect(question.meaning.length).toBeGreaterThan(150)
  })

  test('each row of the answer has the columns of the question in their order', () => {
    for (const row of question.answer(week.world)) expect(Object.keys(row)).toEqual(question.columns)
  })

  test('the answer has more than one row, and a value in every column', () => {
    const rows = question.answer(week.world)
    expect(rows.length).toBeGreaterThan(1)
    const empty = question.columns.filter(column =>
      rows.every(row => row[column] === null || row[column] === 0),
    )
    expect(empty).toEqual(EMPTY_HERE[question.name] ?? [])
  })

  test('the answer of a count in a hurry differs', () => {
    expect(question.trap.answer(week.world)).not.toEqual(question.answer(week.world))
  })

  test('the answer is the same in another run of the workspace', () => {
    expect(question.answer(again)).toEqual(question.answer(week.world))
  })
})

describe('the files of drizzle/questions', () => {
  /** They round to one digit. A sum of nothing is NULL in SQL. */
  const NEAR = 0.0551
  const areSame = (one: unknown, other: unknown): boolean =>
    typeof one === 'number' || typeof other === 'number'
      ? Math.abs(Number(one ?? 0) - Number(other ?? 0)) < NEAR
      : one === other

  test.each(QUESTIONS)('$name has the right answer in its order', ({ name, key, columns, parameters }) => {
    const db = openSqlite(week.file, { readonly: true })
    const found = db.prepare(withParameters(questionNamed(name), parameters ?? {})).all() as AnswerRow[]
    db.close()
    const keyOf = (row: AnswerRow) => JSON.stringify(key.map(column => row[column]))
    const expected = answerTo(name)
    expect(found.map(keyOf)).toEqual(expected.map(keyOf))
    const different = expected.flatMap((row, place) =>
      columns
        .filter(column => !areSame(row[column], found[place]?.[column]))
        .map(column => [keyOf(row), column, found[place]?.[column], row[column]]),
    )
    expect(different).toEqual([])
  })
})

describe('the metrics', () => {
  /** E-mails and meetings with an activity that has a link, and meetings that name a record. */
  const linkedIn = (truth: Truth): ReadonlySet<string> => {
    const expected = expectedWarehouse(truth)
    const rows = (name: string) => expected.find(({ table }) => table === name)?.rows ?? []
    const linked = new Set(rows('activity_links').map(row => row['activity_id']))
    const sources = rows('activities').filter(row => linked.has(row['id'] ?? null))
    const mails = new Map(rows('message_copies').map(row => [row['id'], row['mail_id']]))
    const ids = [
      ...sources.map(row => mails.get(row['source_id'] ?? null) ?? row['source_id']),
      ...rows('meeting_related_objects').map(row => row['meeting_id']),
    ]
    return new Set(ids.map(String))
  }

  test.each(METRICS)('$name has the value that is counted without SQL', ({ name }) => {
    const db = openSqlite(week.file, { readonly: true })
    const sql = `SELECT 'SELECT ' || expression || ' FROM ' || dataset || ' WHERE ' || filter FROM metrics WHERE name = ?`
    const value = db
      .prepare(String(db.prepare(sql).pluck().get(name)))
      .pluck()
      .get()
    db.close()
    const expected = metricValues(week.world, linkedIn(week.truth))[name]
    expect(value).toBeCloseTo(Number(expected), 3)
    expect(value).toBeGreaterThan(0)
  })
})

describe('the world', () => {
  test('the warehouse has what the API publishes', () => {
    expect(compareWarehouse(week.file, expectedWarehouse(week.truth))).toEqual([])
  })

  test('parley observed the changes of deals at the reads that had them', () => {
    const db = openSqlite(week.file, { readonly: true })
    const observed = db
      .prepare("SELECT record_id, field, observed_at FROM crm_record_changes WHERE object = 'deal'")
      .all() as Readonly<Record<'record_id' | 'field' | 'observed_at', string>>[]
    db.close()
    const stored = observed.map(row => `${row.record_id} ${row.field} ${dayOf(row.observed_at)}`)
    const live = new Set(week.world.deals.map(({ id }) => id))
    const expected = week.world.dealChanges.map(
      each => `${each.dealId} ${each.field} ${dayOf(each.observedAt)}`,
    )
    expect(stored.filter(line => live.has(line.split(' ')[0] ?? '')).sort()).toEqual(
      expected.filter(line => live.has(line.split(' ')[0] ?? '')).sort(),
    )
  })

  test('one former member has a name, and another one does not any more', () => {
    const names = week.world.formerMembers.map(({ name }) => name === null)
    expect(names.sort()).toEqual([false, true])
  })

  test('a partner is neither ours nor a customer, and a member at a free mail domain is ours', () => {
    const { sideOf, person } = peopleOf(week.world)
    const [domain] = SETTINGS.partnerDomains
    expect(sideOf(`any.person@${domain}`)).toBe('partner')
    const addresses = week.world.meetings.flatMap(({ attendees }) =>
      attendees.flatMap(({ email }) => email ?? []),
    )
    const partners = addresses.filter(address => sideOf(address) === 'partner')
    expect(partners.length).toBeGreaterThan(5)
    expect(partners.filter(address => isCustomer(person(address, null)))).toEqual([])
    const free = week.world.members.filter(({ email }) => email.endsWith('@gmail.com'))
    expect(free.map(({ email }) => sideOf(email))).toEqual(['ours'])
    expect(sideOf('another.person@gmail.com')).toBe('outside')
  })
})

describe('what makes the workspace realistic changes answers', () => {
  const withSettings =
    (settings: Partial<CompanySettings>) =>
    (world: World): World => ({ ...world, settings: { ...world.settings, ...settings } })
  const CASES: [overlooked: string, naive: (world: World) => World, least: number][] = [
    ['the partner', withSettings({ partnerDomains: [] }), 5],
    ['the domains of free mail', withSettings({ freeMailDomains: [] }), 4],
    ['the local time zone', withSettings({ utcOffsetHours: 0 }), 8],
    ['the currencies', withSettings({ rates: { EUR: 1, USD: 1, JPY: 1 } }), 8],
    [
      'second addresses',
      world => ({
        ...world,
        contacts: world.contacts.map(contact => ({ ...contact, secondEmail: null })),
        mails: world.mails.map(mail => ({
          ...mail,
          participants: mail.participants.map(each => ({ ...each, contactId: null })),
        })),
      }),
      3,
    ],
    [
      'group e-mails',
      world => ({ ...world, mails: world.mails.map(mail => ({ ...mail, isGroup: false })) }),
      3,
    ],
    ['e-mails in two threads', world => ({ ...world, mails: world.mails.map(firstThread) }), 1],
    ['the deleted stage', world => ({ ...world, stages: world.stages.filter(stage => !stage.isDeleted) }), 2],
    ['observed changes', world => ({ ...world, dealChanges: [] }), 3],
  ]

  test.each(CASES)('a count that overlooks %s gives other answers', (_, naive, least) => {
    const changed = QUESTIONS.filter(
      ({ answer }) => JSON.stringify(answer(naive(week.world))) !== JSON.stringify(answer(week.world)),
    )
    expect(changed.length).toBeGreaterThanOrEqual(least)
  })
})

const firstThread = (mail: Mail): Mail => ({ ...mail, threadIds: mail.threadIds.slice(0, 1) })

describe('answers agree with each other', () => {
  test('the open deals of all stages are those of all owners', () => {
    const open = week.world.deals.filter(({ isClosed }) => !isClosed).length
    expect(total(answerTo('open-deals-by-stage'), 'deals')).toBe(open)
    expect(total(answerTo('crm-quality'), 'open_deals')).toBe(open)
    expect(total(answerTo('open-deals-by-stage'), 'without_amount')).toBe(
      total(answerTo('crm-quality'), 'without_amount'),
    )
  })

  test('the won and lost deals of all pipelines are those of all owners and of the cycle times', () => {
    const rows = answerTo('win-rate')
    const [byPipeline, byOwner] = ['pipeline', 'owner'].map(by => rows.filter(row => row['part'] === by))
    for (const column of ['won', 'lost', 'won_amount', 'lost_amount'])
      expect(total(byPipeline ?? [], column)).toBeCloseTo(total(byOwner ?? [], column), 1)
    expect(answerTo('cycle-time').map(row => row['deals'])).toEqual([
      total(byPipeline ?? [], 'won'),
      total(byPipeline ?? [], 'lost'),
    ])
  })

  test('the deals of leavers are the open deals whose owner has left', () => {
    const left = answerTo('crm-quality').filter(row => row['owner_state'] === 'left')
    expect(answerTo('deals-of-leavers').length).toBe(total(left, 'open_deals'))
  })

  test('every team has the same weeks, also those in which it did nothing', () => {
    const rows = answerTo('activity-by-team-and-week')
    expect(new Set(rows.map(row => row['week'])).size).toBe(12)
    expect(rows.length).toBe(12 * week.world.teams.length)
    expect(rows.some(row => row['mails'] === 0 && row['meetings'] === 0)).toBe(true)
  })
})

describe('cases that the workspace does not have', () => {
  test('a deal whose next step is blank is without one', () => {
    const [first, ...others] = week.world.deals.filter(({ isClosed }) => !isClosed)
    if (!first) throw new RangeError('no deal is open')
    const rows = answerTo('crm-quality', { ...week.world, deals: [{ ...first, nextStep: ' ' }, ...others] })
    expect(total(rows, 'without_next_step')).toBe(1)
    expect(rows.find(row => row['without_next_step'] === 1)?.['owner_id']).toBe(first.ownerId)
  })

  test('a closed deal in a stage with another probability is neither won nor lost', () => {
    const stages = week.world.stages.map(stage => ({
      ...stage,
      probability: stage.name === 'Contract active' ? 99 : stage.probability,
    }))
    const before = total(answerTo('win-rate'), 'won')
    const rows = answerTo('win-rate', { ...week.world, stages })
    expect(total(rows, 'outcome_unknown')).toBeGreaterThan(0)
    expect(total(rows, 'won') + total(rows, 'outcome_unknown')).toBe(before)
  })

  test('the share of a member is unknown where no speaker has the name', () => {
    const meetings = week.world.meetings.map(meeting => ({ ...meeting, speakers: [] }))
    for (const row of answerTo('talk-ratio-by-member', { ...week.world, meetings }))
      expect(row).toMatchObject({ median_percent: null, without_share: row['meetings'] })
  })

  test('every customer of an e-mail without a thread waits, since no answer can be recognized', () => {
    const mails = week.world.mails.map(mail => ({ ...mail, threadIds: [] }))
    const rows = answerTo('customers-waiting', { ...week.world, mails })
    expect(rows.length).toBeGreaterThan(answerTo('customers-waiting').length)
    expect(total(rows, 'is_in_thread')).toBe(0)
  })

  test('meetings that cannot be read any more are no contact, but are counted', () => {
    const withheldMeetings = new Set(week.world.meetings.map(({ id }) => id))
    const rows = answerTo('account-health', { ...week.world, meetings: [], withheldMeetings })
    expect(total(rows, 'withheld')).toBeGreaterThan(0)
    expect(total(rows, 'days_since')).toBeGreaterThan(total(answerTo('account-health'), 'days_since'))
  })
})

describe('local time', () => {
  test.each([
    ['2026-05-17T15:00:00.000Z', '2026-05-18', '2026-05-18'],
    ['2026-05-17T14:59:59.999Z', '2026-05-17', '2026-05-11'],
    ['2026-05-20T03:00:00.000Z', '2026-05-20', '2026-05-18'],
  ])('%s is on %s in the week of %s', (instant, day, monday) => {
    expect(dayOf(instant)).toBe(day)
    expect(mondayOf(day)).toBe(monday)
  })

  test.each([
    ['2026-03-31', 0, 'FY2025-Q4', '2026-01-01', '2026-03-31'],
    ['2026-04-01', 0, 'FY2026-Q1', '2026-04-01', '2026-06-30'],
    ['2026-05-20', -1, 'FY2025-Q4', '2026-01-01', '2026-03-31'],
    ['2026-05-20', 2, 'FY2026-Q3', '2026-10-01', '2026-12-31'],
    ['2026-05-20', 3, 'FY2026-Q4', '2027-01-01', '2027-03-31'],
  ])('the fiscal quarter of %s and %i ahead is %s', (day, ahead, name, fromDay, toDay) => {
    expect(fiscalQuarterOf(day, ahead)).toEqual({ name, fromDay, toDay })
  })

  test.each([
    ['within a day', '2026-05-20T01:00:00.000Z', '2026-05-20T03:30:00.000Z', 2.5],
    ['from Friday 17:00 to Monday 10:00', '2026-05-15T08:00:00.000Z', '2026-05-18T01:00:00.000Z', 2],
    ['within a weekend', '2026-05-16T01:00:00.000Z', '2026-05-17T05:00:00.000Z', 0],
    ['from an evening to the next noon', '2026-05-18T12:00:00.000Z', '2026-05-19T03:00:00.000Z', 3],
    ['of a week', '2026-05-11T00:00:00.000Z', '2026-05-18T00:00:00.000Z', 45],
  ])('the working hours %s', (_, from, to, hours) => {
    expect(workingHoursBetween(from, to)).toBeCloseTo(hours, 9)
  })
})
