import { type ExpectedTable, expectedWarehouse } from '../../support/expected.ts'
import { groupedBy } from '../../support/grouped-by.ts'
import type { Cell } from '../../support/row-shape.ts'
import type { Truth } from '../../support/truth.ts'
import { dayOf } from './local-time.ts'
import { SETTINGS } from './settings.ts'
import { NOW } from './workspace.ts'
import type { Deal, DealChange, FormerMember, Mail, Meeting, Stage, World } from './world-rows.ts'

/** Makes plain rows of what the API published at each read. */

/** What the API published at a read. Of all reads but the last, only the CRM records are used. */
export interface Read {
  at: string
  truth: Truth
}

type Cells = Readonly<Record<string, Cell>>

export function worldOf(reads: readonly Read[], former: readonly FormerMember[]): World {
  const last = reads.at(-1)
  if (!last) throw new RangeError('there is no read')
  const tables = expectedWarehouse(last.truth)
  const rows = (table: string): Cells[] => cellsOf(tables, table)
  const recordsAt = reads.map(({ at, truth }) => ({
    at,
    records: recordsOf(cellsOf(crmTables(truth), 'crm_records')),
  }))
  const now = recordsAt.at(-1)?.records ?? []
  const live = (object: string): CrmRecord[] => now.filter(record => record.object === object)
  const linksOf = groupedBy(rows('activity_links'), row => text(row, 'activity_id'))
  return {
    settings: SETTINGS,
    now: NOW,
    today: dayOf(NOW),
    pipelines: live('pipeline').map(({ id, fields }) => ({
      id,
      name: String(fields['name']),
      position: Number(fields['position']),
    })),
    stages: everStages(recordsAt.map(({ records }) => records)),
    deals: live('deal').map(record => dealOf(record, firstSeen(record, recordsAt))),
    dealChanges: changesBetween(recordsAt),
    companies: live('company').map(({ id, fields }) => ({
      id,
      name: String(fields['name']),
      domain: String(fields['domain']).toLowerCase(),
    })),
    contacts: live('contact').map(({ id, fields }) => ({
      id,
      name: String(fields['name']),
      companyId: textOf(fields['company_id']),
      email: String(fields['email']),
      secondEmail: textOf(fields['secondary_email']),
      hasOptedOut: fields['has_opted_out'] === true,
    })),
    dealContacts: rows('crm_record_links')
      .filter(row => row['object'] === 'deal' && row['related_object'] === 'contact')
      .map(row => ({ dealId: text(row, 'record_id'), contactId: text(row, 'related_id') })),
    renewalOrders: live('renewal_order').map(({ id, fields }) => ({
      id,
      amount: numberOf(fields['amount']),
      currency: textOf(fields['currency']),
      dealId: textOf(fields['deal_id']),
    })),
    members: rows('members').map(row => ({
      id: text(row, 'id'),
      name: text(row, 'name'),
      email: text(row, 'email'),
    })),
    formerMembers: former,
    teams: last.truth.teams.map(team => ({
      id: String(team['id']),
      name: String(team['name']),
      memberIds: (team['member_ids'] as unknown as string[]).map(String),
    })),
    mails: mailsOf(rows),
    meetings: meetingsOf(rows),
    withheldMeetings: new Set(last.truth.withheld_meetings.map(({ meeting_id }) => String(meeting_id))),
    activities: rows('activities').map(row => {
      const links = linksOf.get(text(row, 'id')) ?? []
      const linked = (type: string) => [
        ...new Set(links.filter(link => link['context_type'] === type).map(link => text(link, 'context_id'))),
      ]
      return {
        id: text(row, 'id'),
        sourceType: text(row, 'source_type'),
        sourceId: text(row, 'source_id'),
        at: text(row, 'occurred_at'),
        actorId: textOf(row['actor_id']),
        dealIds: linked('deal'),
        companyIds: linked('company'),
        contactIds: linked('contact'),
      }
    }),
  }
}

/** The tables of a read that only concern the CRM. */
const crmTables = (truth: Truth): ExpectedTable[] =>
  expectedWarehouse(
    { ...truth, messages: [], meetings: [], transcripts: [], activities: [] },
    { tables: ['crm_records'] },
  )

/** Cells that may have one of several values have the first. */
function cellsOf(tables: readonly ExpectedTable[], name: string): Cells[] {
  const found = tables.find(({ table }) => table === name)
  if (!found) throw new RangeError(`nothing is expected of the table ${name}`)
  return found.rows.map(row =>
    Object.fromEntries(
      Object.entries(row).map(([column, cell]) => [
        column,
        cell !== null && typeof cell === 'object' ? (cell.oneOf[0] ?? null) : cell,
      ]),
    ),
  )
}

const text = (row: Cells, column: string): string => String(row[column] ?? '')
const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)
const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null)

interface CrmRecord {
  object: string
  id: string
  createdAt: string | null
  fields: Readonly<Record<string, unknown>>
}

const recordsOf = (rows: readonly Cells[]): CrmRecord[] =>
  rows.map(row => ({
    object: text(row, 'object'),
    id: text(row, 'id'),
    createdAt: textOf(row['created_at']),
    fields: JSON.parse(text(row, 'fields')),
  }))

type RecordsAt = readonly { at: string; records: readonly CrmRecord[] }[]

const firstSeen = ({ object, id }: CrmRecord, recordsAt: RecordsAt): string =>
  recordsAt.find(({ records }) => records.some(each => each.object === object && each.id === id))?.at ?? NOW

function dealOf({ id, fields, createdAt }: CrmRecord, firstSeenAt: string): Deal {
  return {
    id,
    name: String(fields['name']),
    companyId: textOf(fields['company_id']),
    pipelineId: textOf(fields['pipeline_id']),
    stageId: textOf(fields['stage_id']),
    ownerId: textOf(fields['owner_id']),
    amount: numberOf(fields['amount']),
    currency: textOf(fields['currency']),
    closeDate: textOf(fields['close_date']),
    isClosed: fields['is_closed'] === true,
    nextStep: textOf(fields['next_step']),
    forecast: textOf(fields['forecast_category']),
    createdAt,
    firstSeenAt,
  }
}

/** Each stage with the values of the last read that had it. */
function everStages(reads: readonly (readonly CrmRecord[])[]): Stage[] {
  const live = new Set(reads.at(-1)?.map(({ id }) => id))
  const stages = reads.flat().filter(({ object }) => object === 'stage')
  const latest = new Map(stages.map(stage => [stage.id, stage]))
  return [...latest.values()].map(({ id, fields }) => ({
    id,
    name: String(fields['name']),
    pipelineId: String(fields['pipeline_id']),
    position: Number(fields['position']),
    probability: Number(fields['probability']),
    isDeleted: !live.has(id),
  }))
}

/** Every field of a deal that differs between two consecutive reads. */
function changesBetween(recordsAt: RecordsAt): DealChange[] {
  return recordsAt.flatMap(({ at, records }, place) => {
    const before = new Map(recordsAt[place - 1]?.records.map(record => [record.id, record]))
    return records
      .filter(({ object, id }) => object === 'deal' && before.has(id))
      .flatMap(({ id, fields }) =>
        Object.keys(fields)
          .map(field => ({
            dealId: id,
            field,
            before: before.get(id)?.fields[field],
            after: fields[field],
            observedAt: at,
          }))
          .filter(change => JSON.stringify(change.before) !== JSON.stringify(change.after)),
      )
  })
}

function mailsOf(rows: (table: string) => Cells[]): Mail[] {
  const copies = groupedBy(rows('message_copies'), row => text(row, 'mail_id'))
  const participants = groupedBy(rows('message_participants'), row => text(row, 'header_message_id'))
  return rows('messages').map(row => {
    const id = text(row, 'header_message_id')
    const own = copies.get(id) ?? []
    return {
      id,
      copyIds: own.map(copy => text(copy, 'id')),
      threadIds: [...new Set(own.flatMap(({ thread_id }) => textOf(thread_id) ?? []))],
      at: text(row, 'received_at'),
      isGroup: row['is_group_email'] === 1,
      participants: (participants.get(id) ?? []).map(each => ({
        role: text(each, 'role'),
        handle: text(each, 'handle'),
        contactId: textOf(each['contact_id']),
      })),
    }
  })
}

function meetingsOf(rows: (table: string) => Cells[]): Meeting[] {
  const [attendees, speakers, items, links] = [
    'meeting_attendees',
    'meeting_speakers',
    'meeting_action_items',
    'meeting_crm_records',
  ].map(table => groupedBy(rows(table), row => text(row, 'meeting_id')))
  return rows('meetings')
    .filter(({ access }) => access === 'open')
    .map(row => {
      const id = text(row, 'id')
      return {
        id,
        at: text(row, 'start_time'),
        ownerName: textOf(row['owner_name']),
        ownerEmail: textOf(row['owner_email']),
        attendees: (attendees?.get(id) ?? []).map(each => ({
          name: textOf(each['name']),
          email: textOf(each['email']),
          contactId: textOf(each['contact_id']),
        })),
        speakers: (speakers?.get(id) ?? []).map(each => ({
          name: textOf(each['speaker_name']),
          ratio: numberOf(each['speaker_ratio']),
        })),
        isLinked: links?.has(id) === true,
        actionItems: (items?.get(id) ?? []).map(each => ({
          id: text(each, 'id'),
          dueDay: textOf(each['due_date']),
          isCompleted: each['completed'] === 1,
        })),
      }
    })
}
