import { groupedBy } from '../support/grouped-by.ts'
import { ordered, sum } from './counting.ts'
import type { Cells, DemoWarehouse } from './demo-warehouse.ts'
import { type Expected, quoted, type Recount, text, within } from './recount.ts'

const isAsked = within('2025-06-01', '2026-06-01')
/** The last 365 days of this workspace. */
const SINCE = '2025-07-01'

/** Questions about what was said and answered in meetings. */
export const TALK_RECOUNTS: Readonly<Record<string, Recount>> = {
  'deals-where-a-term-was-said': {
    parameters: { term: quoted('%OTHER vendors%') },
    least: 3,
    expected: dealsWithTerm,
  },
  'one-meeting': {
    parameters: {},
    least: 3,
    expected: warehouse => {
      const [newest] = ordered(
        meetingsOf(warehouse).filter(({ id }) => rowsOf(warehouse, 'meeting_chapters', id).length > 0),
        { by: row => text(row, 'start_time'), down: true },
        { by: row => text(row, 'id') },
      )
      const titles = rowsOf(warehouse, 'meeting_chapters', newest?.['id'])
      const points = rowsOf(warehouse, 'meeting_chapter_items', newest?.['id']).map(item => ({
        place: Number(item['time']),
        what: 'point',
        chapter: text(
          titles.find(({ position }) => position === item['chapter_position']),
          'title',
        ),
        about: text(item, 'item'),
        due_date: null,
        order: Number(item['chapter_position']) * 100 + Number(item['position']),
      }))
      const actions = rowsOf(warehouse, 'meeting_action_items', newest?.['id']).map(item => ({
        place: Number(item['time']),
        what: item['completed'] === 1 ? 'action, done' : 'action, open',
        chapter: null,
        about: text(item, 'text'),
        due_date: item['due_date'] ?? null,
        order: 1e9 + Number(item['position']),
      }))
      return ordered<Expected & { place: number; order: number }>(
        [...points, ...actions],
        { by: ({ place }) => place },
        { by: ({ order }) => order },
      ).map(({ order, ...row }) => row)
    },
  },
  'mentions-of-a-term-by-month': {
    parameters: { term: quoted('%Other Vendors%') },
    least: 6,
    expected: warehouse => mentions(warehouse, 'other vendors'),
  },
  'playbook-questions-unanswered': {
    parameters: {},
    least: 3,
    expected: unanswered,
  },
}

/** The open meetings: only the existence of the others is known. */
const meetingsOf = (warehouse: DemoWarehouse): readonly Cells[] =>
  warehouse.rows('meetings').filter(({ access }) => access === 'open')

const rowsOf = (warehouse: DemoWarehouse, table: string, meeting: unknown): Cells[] =>
  warehouse.rows(table).filter(({ meeting_id }) => meeting_id === meeting)

/** From the payloads as they were sent. A deal's meetings are those of its activities. */
function dealsWithTerm(warehouse: DemoWarehouse): Expected[] {
  const { after } = warehouse
  const began = new Map(
    after.meetings.map(({ meeting_id, start_time }) => [
      meeting_id,
      new Date(String(start_time)).toISOString(),
    ]),
  )
  const mentions = new Map(
    after.transcripts.map(({ meeting_id, entries }) => [
      meeting_id,
      (entries as { text: string }[]).filter(entry => entry.text.includes('other vendors')).length,
    ]),
  )
  const pairs = after.activities.flatMap(({ source_id, links }) =>
    (links as Record<string, string>[]).flatMap(({ context_type, context_id }) =>
      context_type === 'deal' && (mentions.get(source_id) ?? 0) > 0 && (began.get(source_id) ?? '') >= SINCE
        ? { deal: context_id, meeting: source_id }
        : [],
    ),
  )
  const stages = new Map(warehouse.records('stage').map(({ id, fields }) => [id, fields['name']]))
  const members = new Map(warehouse.rows('members').map(row => [row['id'], text(row, 'name')]))
  const rows = warehouse
    .records('deal')
    .filter(({ fields }) => !fields['is_closed'])
    .flatMap(({ id, fields }) => {
      const meetings = [...new Set(pairs.filter(({ deal }) => deal === id).map(({ meeting }) => meeting))]
      const owner = fields['owner_id']
      const amount = typeof fields['amount'] === 'number' ? fields['amount'] : null
      if (meetings.length === 0) return []
      return {
        deal: String(fields['name']),
        stage: String(stages.get(String(fields['stage_id']))),
        owner: typeof owner === 'string' ? (members.get(owner) ?? `Former member ${owner.slice(-4)}`) : null,
        amount,
        currency: null,
        amount_reporting: amount,
        meetings: meetings.length,
        mentions: sum(meetings.map(meeting => mentions.get(meeting) ?? 0)),
        last_said:
          meetings
            .map(meeting => (began.get(meeting) ?? '').slice(0, 10))
            .sort()
            .at(-1) ?? null,
        outcome: 'open',
        deal_id: id,
      }
    })
  return ordered(rows, { by: ({ amount }) => amount, down: true }, { by: ({ deal }) => deal })
}

/** Mentions in the requested period, from the original transcripts. */
export function mentions({ after }: DemoWarehouse, term: string): Expected[] {
  const began = new Map(
    after.meetings.map(({ meeting_id, start_time }) => [
      meeting_id,
      new Date(String(start_time)).toISOString(),
    ]),
  )
  const heard = after.transcripts.flatMap(({ meeting_id, entries }) => {
    const month = began.get(meeting_id) ?? ''
    const all = entries as { text: string; contact_id: string | null }[]
    if (all.length === 0 || !isAsked(month)) return []
    return { month: month.slice(0, 7), said: all.filter(entry => entry.text.toLowerCase().includes(term)) }
  })
  const months = groupedBy(heard, ({ month }) => month)
  return ordered([...months], { by: ([month]) => month }).map(([month, all]) => {
    const said = all.flatMap(meeting => meeting.said)
    const meetings = all.filter(meeting => meeting.said.length > 0).length
    return {
      month,
      mentions: said.length,
      by_contacts: said.filter(({ contact_id }) => contact_id !== null).length,
      meetings,
      meetings_with_transcript: all.length,
      percent: (100 * meetings) / all.length,
    }
  })
}

const NO_ANSWERS = ['', '-', 'n/a', 'unknown', 'not discussed', 'not mentioned', 'not answered']

function unanswered(warehouse: DemoWarehouse): Expected[] {
  const recent = new Set(
    meetingsOf(warehouse)
      .filter(({ start_time }) => String(start_time) >= SINCE)
      .map(({ id }) => id),
  )
  const results = warehouse
    .rows('playbook_results')
    .filter(({ meeting_id }) => recent.has(meeting_id ?? null))
  const answers = groupedBy(warehouse.rows('talk_point_results'), row => text(row, 'playbook_result_id'))
  const playbooks = new Map(playbooksStored(warehouse).map(row => [row['id'], row]))
  const points = groupedBy(pointsStored(warehouse), row => text(row, 'playbook_id'))
  const asked = results.flatMap(result => {
    const given = answers.get(text(result, 'id')) ?? []
    const playbook = playbooks.get(result['playbook_id'] ?? null)
    const isNewer = playbook !== undefined && text(result, 'created_at') >= text(playbook, 'updated_at')
    const answered = given.map(row => ({
      result,
      point: text(row, 'talk_point_id'),
      question: text(row, 'question'),
      isUnanswered: NO_ANSWERS.includes(text(row, 'answer').trim().replace(/\.+$/, '').toLowerCase()),
      isMissing: false,
    }))
    const missing = (points.get(text(result, 'playbook_id')) ?? [])
      .filter(({ id }) => isNewer && !given.some(({ talk_point_id }) => talk_point_id === id))
      .map(row => ({
        result,
        point: text(row, 'id'),
        question: text(row, 'question'),
        isUnanswered: false,
        isMissing: true,
      }))
    return [...answered, ...missing]
  })
  const groups = groupedBy(asked, ({ result, point }) => `${result['playbook_id']} ${point}`)
  const rows = [...groups.values()].flatMap(all => {
    const [first] = all
    const bad = all.filter(({ isUnanswered, isMissing }) => isUnanswered || isMissing)
    if (!first || bad.length === 0) return []
    const playbook = playbooks.get(first.result['playbook_id'] ?? null)
    return {
      playbook: text(playbook ?? { name: first.result['playbook_name'] ?? null }, 'name'),
      question: first.question,
      results: all.length,
      unanswered: all.filter(({ isUnanswered }) => isUnanswered).length,
      missing: all.filter(({ isMissing }) => isMissing).length,
      unanswered_percent: (100 * bad.length) / all.length,
    }
  })
  return ordered(
    rows,
    { by: row => Math.round(row.unanswered_percent * 10), down: true },
    { by: ({ results: count }) => count, down: true },
    { by: ({ playbook }) => playbook },
    { by: ({ question }) => question },
  )
}

/** Whether an inactive playbook is known depends on earlier answers, so these are taken from the database. */
const playbooksStored = (warehouse: DemoWarehouse): readonly Cells[] =>
  warehouse.stored('SELECT id, name, updated_at FROM playbooks WHERE _deleted_at IS NULL')
const pointsStored = (warehouse: DemoWarehouse): readonly Cells[] =>
  warehouse.stored('SELECT playbook_id, id, question FROM playbook_talk_points')
