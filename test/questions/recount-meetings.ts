import { groupedBy } from '../support/grouped-by.ts'
import { daysBetween, ordered, sum } from './counting.ts'
import { type Cells, type DemoWarehouse, TODAY } from './demo-warehouse.ts'
import { type Expected, minute, quoted, type Recount, text, within } from './recount.ts'

const isAsked = within('2025-07-01', '2026-06-01')
const ASKED = { since: quoted('2025-07-01'), until: quoted('2026-06-01') }

export const MEETING_RECOUNTS: Readonly<Record<string, Recount>> = {
  'talk-ratio-by-meeting': {
    parameters: ASKED,
    least: 20,
    expected: warehouse =>
      ordered(
        heldWithOutsiders(warehouse),
        { by: ({ start_time }) => text({ start_time: start_time ?? null }, 'start_time'), down: true },
        { by: row => text(row, 'id') },
      ).flatMap(meeting => {
        const shares = sharesOf(warehouse, meeting)
        if (!shares) return []
        return {
          began: minute(meeting['start_time']),
          meeting: text(meeting, 'title'),
          owner: text(meeting, 'owner_name'),
          speakers: shares.speakers,
          ours_percent: shares.ours,
          theirs_percent: shares.theirs,
          unknown_percent: shares.unknown,
        }
      }),
  },
  'meetings-without-crm-link': {
    parameters: ASKED,
    least: 10,
    expected: warehouse => withoutLink(warehouse),
  },
  'action-items-past-due': {
    parameters: { today: quoted(TODAY), since: quoted('2025-07-01') },
    least: 20,
    expected: ({ after }) =>
      ordered(
        after.meetings
          .map(meeting => ({ meeting, owner: meeting['meeting_owner'] as { name: string } }))
          .filter(({ meeting }) => new Date(String(meeting['start_time'])) >= new Date('2025-07-01'))
          .flatMap(({ meeting, owner }) =>
            (meeting['action_items'] as Record<string, unknown>[]).map((item, place) => ({
              meeting,
              owner,
              item,
              place,
            })),
          )
          .filter(({ item }) => !item['completed'] && item['due_date'] && String(item['due_date']) < TODAY),
        { by: ({ item }) => String(item['due_date']) },
        { by: ({ owner }) => owner.name },
        { by: ({ meeting }) => String(meeting['meeting_id']) },
        { by: ({ place }) => place },
      ).map(({ meeting, owner, item }) => ({
        days_late: daysBetween(String(item['due_date']), TODAY),
        due_date: String(item['due_date']),
        meeting_owner: owner.name,
        action_item: String(item['text']),
        meeting: String(meeting['title']),
        met_on: new Date(String(meeting['start_time'])).toISOString().slice(0, 10),
        url: String(meeting['service_meeting_url']),
      })),
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
        at: Number(item['time']),
        what: 'point',
        chapter: text(
          titles.find(({ position }) => position === item['chapter_position']),
          'title',
        ),
        text: text(item, 'item'),
        due_date: null,
        place: Number(item['chapter_position']) * 100 + Number(item['position']),
      }))
      const actions = rowsOf(warehouse, 'meeting_action_items', newest?.['id']).map(item => ({
        at: Number(item['time']),
        what: item['completed'] === 1 ? 'action, done' : 'action, open',
        chapter: null,
        text: text(item, 'text'),
        due_date: item['due_date'] ?? null,
        place: 1e9 + Number(item['position']),
      }))
      return ordered<Expected & { at: number; place: number }>(
        [...points, ...actions],
        { by: ({ at }) => at },
        { by: ({ place }) => place },
      ).map(({ place, ...row }) => row)
    },
  },
  'mentions-of-a-term-by-month': {
    parameters: { ...ASKED, term: quoted('Other Vendors') },
    least: 6,
    expected: warehouse => mentions(warehouse, 'other vendors'),
  },
  'playbook-questions-unanswered': {
    parameters: { since: quoted('2025-07-01') },
    least: 3,
    expected: unanswered,
  },
}

/** The open meetings: only the existence of the others is known. */
const meetingsOf = (warehouse: DemoWarehouse): readonly Cells[] =>
  warehouse.rows('meetings').filter(({ access }) => access === 'open')

/** Meetings of the requested period with an outside person. */
const heldWithOutsiders = (warehouse: DemoWarehouse): readonly Cells[] =>
  meetingsOf(warehouse).filter(
    ({ id, start_time }) =>
      isAsked(start_time) &&
      rowsOf(warehouse, 'meeting_attendees', id ?? null).some(({ is_internal }) => is_internal === 0),
  )

const rowsOf = (warehouse: DemoWarehouse, table: string, meeting: unknown): Cells[] =>
  warehouse.rows(table).filter(({ meeting_id }) => meeting_id === meeting)

function sharesOf(warehouse: DemoWarehouse, { id }: Cells) {
  const speakers = rowsOf(warehouse, 'meeting_speakers', id)
  const attendees = rowsOf(warehouse, 'meeting_attendees', id)
  const sideOf = (name: unknown) => {
    const sides = new Set(attendees.filter(each => each['name'] === name).map(each => each['is_internal']))
    return sides.size === 1 ? [...sides][0] : null
  }
  const all = sum(speakers.map(({ speaker_ratio }) => Number(speaker_ratio)))
  if (all === 0) return undefined
  const share = (side: unknown) => {
    const theirs = speakers.filter(({ speaker_name }) => sideOf(speaker_name) === side)
    return (100 * sum(theirs.map(({ speaker_ratio }) => Number(speaker_ratio)))) / all
  }
  return { speakers: speakers.length, ours: share(1), theirs: share(0), unknown: share(null) }
}

/** From the payloads as they were sent. */
function withoutLink({ after }: DemoWarehouse): Expected[] {
  const found = after.meetings.flatMap(meeting => {
    const began = new Date(String(meeting['start_time'])).toISOString()
    const outsiders = (meeting['attendees'] as { is_internal: boolean }[]).filter(
      ({ is_internal }) => !is_internal,
    )
    const isLinked = (meeting['crm_integrations'] as unknown[]).length > 0
    if (!isAsked(began) || isLinked || outsiders.length === 0) return []
    const related = (meeting['related_objects'] as { display_name: string }[]).map(
      ({ display_name }) => display_name,
    )
    const owner = meeting['meeting_owner'] as { name: string }
    return {
      id: String(meeting['meeting_id']),
      exactly: began,
      began: minute(began),
      meeting: String(meeting['title']),
      owner: owner.name,
      outsiders: outsiders.length,
      belongs_to: related.length === 0 ? null : related.join(', '),
      url: String(meeting['service_meeting_url']),
    }
  })
  return ordered(found, { by: ({ exactly }) => exactly, down: true }, { by: ({ id }) => id }).map(
    ({ id, exactly, ...row }) => row,
  )
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
      .filter(({ start_time }) => String(start_time) >= '2025-07-01')
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
