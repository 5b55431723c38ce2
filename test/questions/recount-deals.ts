import { groupedBy } from '../support/grouped-by.ts'
import { exactDays, mean, median, ordered } from './counting.ts'
import { activitiesBy, amountOf, latest, membersOf, ownerOf, stagesOf } from './deals.ts'
import type { DemoWarehouse } from './demo-warehouse.ts'
import { ALWAYS, type Expected, minute, quoted, type Recount, text } from './recount.ts'

export const DEAL_RECOUNTS: Readonly<Record<string, Recount>> = {
  'time-to-close-by-stage': { parameters: {}, least: 2, expected: timeToClose },
  'stage-changes-last-quarter': { parameters: ALWAYS, least: 3, expected: stageChanges },
  'deals-where-a-term-was-said': {
    parameters: { since: quoted('2025-07-01'), term: quoted('OTHER vendors') },
    least: 3,
    expected: dealsWithTerm,
  },
}

/** When parley itself saw each deal in another stage, which nothing but the database can tell. */
function seenChanges(warehouse: DemoWarehouse): Map<string, string[]> {
  const changes = warehouse.stored(
    "SELECT record_id, observed_at FROM crm_record_changes WHERE object = 'deal' AND field = 'stage_id'",
  )
  const groups = groupedBy(changes, row => text(row, 'record_id'))
  return new Map([...groups].map(([id, rows]) => [id, rows.map(row => text(row, 'observed_at')).sort()]))
}

function timeToClose(warehouse: DemoWarehouse): Expected[] {
  const activities = activitiesBy('deal', warehouse)
  const stages = stagesOf(warehouse)
  const seen = seenChanges(warehouse)
  const closed = warehouse
    .records('deal')
    .filter(({ fields }) => fields['is_closed'] === true)
    .map(({ id, updated_at, fields }) => {
      const all = activities.get(id) ?? []
      const changes = all.filter(({ kind, isDirect }) => kind === 'OBJECT_CHANGE_EVENT' && isDirect)
      const told = [latest(changes) ?? '', updated_at ?? ''].sort()
      const closedAt = seen.get(id)?.at(-1) ?? told.at(-1) ?? ''
      const [first] = ordered(
        all.filter(({ kind }) => kind === 'MEETING'),
        { by: ({ at }) => at },
      )
      const days = first && first.at <= closedAt ? exactDays(first.at, closedAt) : undefined
      return { stage: stages.get(fields['stage_id']), days, isSeen: seen.has(id) }
    })
  const groups = groupedBy(closed, ({ stage }) => stage?.id ?? '')
  const rows = [...groups].map(([id, all]) => {
    const days = all.flatMap(each => each.days ?? [])
    return {
      id,
      stage: String(all[0]?.stage?.fields['name']),
      deals_closed: all.length,
      closing_seen: all.filter(({ isSeen }) => isSeen).length,
      with_a_meeting_before: days.length,
      median_days: median(days),
      mean_days: mean(days),
      shortest_days: days.length === 0 ? null : Math.min(...days),
      longest_days: days.length === 0 ? null : Math.max(...days),
    }
  })
  return ordered(
    rows,
    { by: row => row.deals_closed, down: true },
    { by: ({ stage }) => stage },
    { by: ({ id }) => id },
  ).map(({ id, ...row }) => row)
}

/** The two states of the API give the change; the database gives the time of its detection. */
function stageChanges(warehouse: DemoWarehouse): Expected[] {
  const stages = stagesOf(warehouse)
  const members = membersOf(warehouse)
  const seen = seenChanges(warehouse)
  const stageBefore = new Map(
    warehouse.before.crm_records.map(({ id, fields }) => [
      String(id),
      (fields as Record<string, unknown>)['stage_id'],
    ]),
  )
  const rows = warehouse
    .records('deal')
    .filter(({ id, fields }) => stageBefore.get(id) !== fields['stage_id'])
    .map(({ id, fields }) => {
      const at = seen.get(id)?.at(-1) ?? ''
      return {
        at,
        seen: minute(at),
        deal: String(fields['name']),
        from_stage: String(stages.get(stageBefore.get(id))?.fields['name']),
        to_stage: String(stages.get(fields['stage_id'])?.fields['name']),
        owner: ownerOf(members, fields),
        deal_id: id,
      }
    })
  return ordered(rows, { by: ({ at }) => at }, { by: ({ deal }) => deal }, { by: row => row.deal_id }).map(
    ({ at, ...row }) => row,
  )
}

function dealsWithTerm(warehouse: DemoWarehouse): Expected[] {
  const stages = stagesOf(warehouse)
  const began = new Map(
    warehouse.after.meetings.map(({ meeting_id, start_time }) => [
      String(meeting_id),
      new Date(String(start_time)).toISOString(),
    ]),
  )
  const mentions = new Map(
    warehouse.after.transcripts.map(({ meeting_id, entries }) => {
      const said = (entries as { text: string }[]).filter(({ text: words }) =>
        words.includes('other vendors'),
      )
      return [String(meeting_id), said.length]
    }),
  )
  const activities = activitiesBy('deal', warehouse)
  const rows = warehouse
    .records('deal')
    .filter(({ fields }) => !fields['is_closed'])
    .flatMap(({ id, fields }) => {
      const held = (activities.get(id) ?? []).filter(({ kind }) => kind === 'MEETING')
      const ids = [...new Set(held.map(({ source }) => source))].filter(
        source => (mentions.get(source) ?? 0) > 0 && (began.get(source) ?? '') >= '2025-07-01',
      )
      if (ids.length === 0) return []
      const days = ids.map(source => (began.get(source) ?? '').slice(0, 10)).sort()
      return {
        deal: String(fields['name']),
        stage: String(stages.get(fields['stage_id'])?.fields['name']),
        amount: amountOf(fields),
        meetings: ids.length,
        mentions: ids.reduce((total, source) => total + (mentions.get(source) ?? 0), 0),
        last_said: days.at(-1) ?? null,
        deal_id: id,
      }
    })
  return ordered(rows, { by: ({ amount }) => amount, down: true }, { by: ({ deal }) => deal })
}
