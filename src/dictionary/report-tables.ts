import { METRIC_TABLE, REPORT_CHANGE_TABLE, REPORT_SETTING_TABLE } from '../catalog/bookkeeping/tables.ts'
import type { ValueOnDelete } from '../catalog/bookkeeping/value-on-delete.ts'
import { WEEKDAYS } from '../config/kinds.ts'
import { meaningsOf, oneOf } from '../declare/table.ts'
import { COLUMN_VALUES } from './column-values.ts'
import { CONVERSATION_VIEWS, PEOPLE_TABLES } from './conversation-tables.ts'
import {
  type ColumnDetails,
  type ColumnLine,
  column,
  columnsOf,
  type DescribedTable,
  type Recount,
  reportTable,
  reportView,
} from './described-table.ts'
import { describedBookkeeping } from './sync-tables.ts'
import { DEAL_VERSIONS, PEOPLE_VERSIONS } from './version-tables.ts'

/**
 * Descriptions of the tables and views for reports, which give one name to what each workspace calls differently.
 * `store/reporting` makes these tables and views, with the columns that are described here.
 */

const STAGE_ID = 'f5d4b9e7-30b1-4280-8e6d-81a24d5e6f70'
const PIPELINE_ID = '0d9c3f1e-6a57-4b8e-9a3c-2f1e0d9c8b7a'
const DEAL_ID = 'c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d'
const COMPANY_ID = '3b0f2a9c-58d1-4f6e-8c7b-1a2b3c4d5e6f'
const CONTACT_ID = '7e1d2c3b-4a59-4687-9f0e-8d7c6b5a4f3e'
const DAY = '2026-03-04'
const NO_FIELD = 'The record has no value, or no field of the CRM holds it.'

const byField = { nullMeaning: NO_FIELD, nullMeaningIsTables: true } as const

export const OUTCOMES = {
  open: 'the deal goes on',
  won: 'won',
  lost: 'lost',
  closed: 'closed, and nothing says whether it is won',
  unknown: 'nothing says what it means',
} as const

const outcome = (about: string, onDelete: ValueOnDelete): ColumnLine =>
  column('text', `${meaningsOf(OUTCOMES)}. ${about}Unknown is never open.`, 'open', {
    values: Object.keys(OUTCOMES),
    onDelete,
  })

const OWNER_STATES = {
  member: 'a member now',
  left: 'not a member any more, or never published',
  unnamed: 'a member without a name',
  none: 'it has no owner',
  unknown: 'members were not read yet, or `sync.resources` leaves them out',
}

const PIPELINE_KINDS = ['sales', 'renewal', 'other']
const CLOSED_FROM = ['field', 'observed', 'close_date']

const value = (about: string, example: string, details: ColumnDetails = {}): ColumnLine =>
  column('text', about, example, { ...(details.nullMeaning === undefined && byField), ...details })

const day = (about: string, nullMeaning?: string): ColumnLine =>
  column('date', about, DAY, {
    ...(nullMeaning === NO_FIELD ? byField : nullMeaning === undefined ? {} : { nullMeaning }),
  })

const key = (about: string, example: string, details: ColumnDetails = {}): ColumnLine =>
  column('text', about, example, { isKey: true, ...details })

const RECORD = { refersTo: ['crm_records.id'], resolves: true } as const

const OBJECT = column('text', 'Object of the record (`crm_objects.name`), as in `record_activity`.', 'deal')

/** The test that the view has each live record of the object that the settings or a guess name. */
const liveRecords = (role: string): Recount => ({
  about: 'it has one row for each live record of the object',
  key: [`${role}_id`],
  ours: `SELECT ${role}_id FROM ${role === 'company' ? 'companies' : `${role}s`}`,
  base: `SELECT id FROM crm_records WHERE _deleted_at IS NULL
    AND object = (SELECT value FROM report_settings WHERE name = 'crm.${role}.object')`,
})

/** SQL for the values in the list of a setting. */
const listOf = (setting: string): string =>
  `SELECT value FROM json_each((SELECT value FROM report_settings WHERE name = '${setting}'))`

const OWNER: Readonly<Record<string, ColumnLine>> = {
  owner_id: value('Member who owns it.', 'mem_1', { refersTo: ['members.id'] }),
  owner: value(
    "The owner's name; `Former member` and the end of the id for a member whose name is gone, `Member` and the end of the id where members were not read yet. Never NULL where `owner_id` is set.",
    'Aiko Tanaka',
  ),
  owner_state: column('text', `${meaningsOf(OWNER_STATES)}.`, 'member', {
    values: Object.keys(OWNER_STATES),
  }),
}

const COMPANY: Readonly<Record<string, ColumnLine>> = {
  company_id: value('Company.', COMPANY_ID, { refersTo: ['companies.company_id'] }),
  company: value('Name of the company.', 'Example Ltd'),
}

/** Tables that are computed from others, and computed again when those change. */
export const DERIVED_TABLES: readonly DescribedTable[] = [
  ...PEOPLE_TABLES,
  reportTable(
    {
      name: 'pipelines',
      about: 'One pipeline of deals.',
      onDelete: 'recomputed',
      sortable: ['pipeline_id'],
      label: 'pipeline',
    },
    {
      pipeline_id: key('Pipeline, as in the records of deals.', PIPELINE_ID, { onDelete: 'kept' }),
      pipeline: value('Name of the pipeline.', 'New business', {
        nullMeaning: 'It is not known.',
        onDelete: 'purged',
      }),
      kind: column(
        'text',
        `${oneOf(PIPELINE_KINDS)}, by \`crm.sales_pipelines\` and \`crm.renewal_pipelines\`, else by its name.`,
        'sales',
        { values: PIPELINE_KINDS },
      ),
      position: column('real', 'Its place among the pipelines.', '0', { nullMeaning: 'It is not known.' }),
      is_percent: column(
        'boolean',
        '1 when probabilities of its deals are per cent, since some are above 1. `deals.probability` is always from 0 to 1.',
        '0',
      ),
    },
  ),
  reportTable(
    {
      name: 'stage_outcomes',
      about: 'One stage of deals, deleted ones too, and what it says of a deal in it.',
      onDelete: 'recomputed',
      sortable: ['stage_id'],
      label: 'stage',
    },
    {
      stage_id: key('Stage, as in the records of deals.', STAGE_ID, { onDelete: 'kept' }),
      stage: value('Name of the stage.', 'Proposal', {
        nullMeaning: 'It is not known, or was purged.',
        onDelete: 'purged',
      }),
      pipeline_id: value('Pipeline of the stage.', PIPELINE_ID, {
        nullMeaning: 'It is not known.',
        refersTo: ['pipelines.pipeline_id'],
      }),
      position: column('real', 'Its place in the pipeline.', '2', { nullMeaning: 'It is not known.' }),
      probability: column('real', 'Probability of the stage itself, from 0 to 1.', '0.6', {
        unit: 'share',
        nullMeaning: 'The CRM has none for it, or one outside of 0 to 100 %.',
      }),
      outcome: outcome('', 'kept'),
      is_guessed: column('boolean', '0 where the settings say so.', '1'),
      why: column('text', 'Why this outcome.', 'All 12 deals in it are open.'),
    },
  ),
  reportTable(
    {
      name: 'calendar',
      about:
        'One local day of `reporting.time_zone`, from two years before the first row to two years ahead. Join it to count days without rows too.',
      sortable: ['day'],
      recounts: [
        {
          about: 'each day ends when the next begins',
          key: ['day'],
          values: ['utc_to'],
          ours: 'SELECT day, utc_to FROM calendar WHERE day < (SELECT max(day) FROM calendar)',
          base: 'SELECT c.day, n.utc_from FROM calendar c JOIN calendar n ON n.day_number = c.day_number + 1',
        },
        {
          about: 'its workdays are those of the settings',
          key: ['day'],
          values: ['is_workday'],
          ours: 'SELECT day, is_workday FROM calendar',
          base: `SELECT day, day NOT IN (${listOf('reporting.holidays')}) AND '["${WEEKDAYS.join('","')}"]' ->> (weekday - 1)
            IN (${listOf('reporting.workdays')}) FROM calendar`,
        },
        {
          about: 'its working hours are those of the days before',
          key: ['day'],
          values: ['hours'],
          ours: 'SELECT day, round(work_hours_before, 4) FROM calendar',
          base: `SELECT day, round(coalesce(sum(coalesce(julianday(work_to) - julianday(work_from), 0) * 24)
            OVER (ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0), 4) FROM calendar`,
        },
      ],
    },
    {
      day: column('date', 'The local day.', DAY, { isKey: true }),
      day_number: column('integer', 'Days since 1970-01-01, to count days between two.', '20516', {
        unit: 'days',
      }),
      utc_from: column('timestamp', 'When it begins.', '2026-03-03T15:00:00.000Z'),
      utc_to: column('timestamp', 'When the next day begins.', '2026-03-04T15:00:00.000Z'),
      week: day('First day of its week, by `reporting.week_start`.'),
      month: column('text', 'Calendar month.', '2026-03'),
      quarter: column('text', 'Calendar quarter.', '2026-Q1'),
      year: column('integer', 'Calendar year.', '2026'),
      fiscal_quarter: column('text', 'Fiscal quarter, by `reporting.fiscal_year_start`.', 'FY2026-Q1'),
      fiscal_year: column('integer', 'Fiscal year, by `reporting.fiscal_year_named_by`.', '2026'),
      weekday: column('integer', 'Day of the week: 1 is Monday, 7 is Sunday.', '3'),
      is_workday: column('boolean', '1 on the days of `reporting.workdays` but `reporting.holidays`.', '1'),
      work_from: column(
        'timestamp',
        'When work begins, by `reporting.work_from`.',
        '2026-03-04T00:00:00.000Z',
        { nullMeaning: 'It is no workday.' },
      ),
      work_to: column('timestamp', 'When work ends, by `reporting.work_to`.', '2026-03-04T09:00:00.000Z', {
        nullMeaning: 'It is no workday.',
      }),
      work_hours_before: column(
        'real',
        'Working hours from the first day of the calendar to this one, to count those between two.',
        '1566',
        { unit: 'hours' },
      ),
    },
  ),
  DEAL_VERSIONS,
  COLUMN_VALUES,
]

export const isDerived = (table: string): boolean => DERIVED_TABLES.some(({ name }) => name === table)

const oneDeal = (which: string): ColumnLine =>
  column('integer', `1 for ${which} deal, else 0, to add up.`, '1', { unit: 'deals' })

const amountOf = (which: string): ColumnLine =>
  column('real', `\`amount_reporting\` of ${which} deal, to add up.`, '120000', {
    unit: '`reporting.currency`',
    nullMeaning: 'It is another deal, or `amount_reporting` is NULL.',
  })

const DEAL_VIEWS: readonly DescribedTable[] = [
  reportView(
    {
      name: 'periods',
      onDelete: null,
      about:
        'One named period, with its days: `last 7 days`, `last 30 days`, `last 90 days`, `last 365 days` (today is the last of them), `last 12 weeks`, `last 12 months`, `last 4 quarters` and `last 4 fiscal quarters` (whole ones), and `this`, `last` and `next` `week`, `month`, `quarter`, `fiscal quarter`, `year` and `fiscal year`. The only place that knows which day it is.',
    },
    {
      period: column('text', 'Name of the period.', 'last quarter', { isKey: true }),
      from_day: day('Its first day.'),
      to_day: day('The first day after it.'),
      previous_from_day: day(
        'First day of the period before it, which is as long or the one before in the calendar.',
        'The calendar does not reach that far.',
      ),
      previous_to_day: day(
        'The first day after the period before it.',
        'The calendar does not reach that far.',
      ),
      today: day(
        'The local day up to which the warehouse is complete, so that a copy of last week counts from last week.',
      ),
      today_number: column('integer', '`calendar.day_number` of today.', '20516', { unit: 'days' }),
      clock_day: day('The local day by the clock of the machine that reads this.'),
      utc_from: column('timestamp', 'When its first day begins.', '2026-03-31T15:00:00.000Z'),
      utc_to: column('timestamp', 'When its last day is over.', '2026-06-30T15:00:00.000Z'),
    },
  ),
  reportView(
    {
      name: 'deals',
      about:
        'One live deal of the CRM, with the same columns in every workspace. `report_settings` says which field of the CRM holds what; where none does, or the record has no value, the column is NULL.',
      label: 'deal',
      recounts: [liveRecords('deal')],
    },
    {
      deal_id: key('Deal (`crm_records.id`).', DEAL_ID, RECORD),
      deal: value('Name of the deal.', 'Example Ltd – Pilot'),
      ...COMPANY,
      pipeline_id: value('Pipeline.', PIPELINE_ID, { refersTo: ['pipelines.pipeline_id'] }),
      pipeline: value('Name of the pipeline.', 'New business'),
      pipeline_kind: column(
        'text',
        `${oneOf(PIPELINE_KINDS)}. \`sales\` where the deal has no pipeline.`,
        'sales',
        { values: PIPELINE_KINDS },
      ),
      stage_id: value('Stage.', STAGE_ID, { refersTo: ['stage_outcomes.stage_id'], resolves: true }),
      stage: value('Name of the stage.', 'Proposal'),
      stage_position: column('real', 'Place of the stage in its pipeline.', '2', { ...byField }),
      ...OWNER,
      amount: column('real', 'What it is worth.', '120000', { ...byField, unit: '`currency`' }),
      currency: value('Currency of the amount, in capitals.', 'EUR'),
      amount_reporting: column(
        'real',
        'The amount in `reporting.currency`, by `reporting.rates`. Where no field holds a currency, the amount itself.',
        '120000',
        { unit: '`reporting.currency`', nullMeaning: 'There is no amount, no currency, or no rate for it.' },
      ),
      created_day: day(
        'Local day on which the deal was created: by the field for it, else when the CRM made the record.',
        NO_FIELD,
      ),
      close_date: day('Day on which it is expected to close, or closed.', NO_FIELD),
      closed_day: day(
        'Local day on which it was closed: by the field for it, else when parley first saw it closed, if parley had seen it before, else its close date.',
        'It is not won, lost or closed, or no day is known.',
      ),
      closed_from: value(`Where \`closed_day\` is from: ${oneOf(CLOSED_FROM)}.`, 'close_date', {
        values: CLOSED_FROM,
        nullMeaning: '`closed_day` is NULL.',
      }),
      days_to_close: column(
        'integer',
        'Days from `created_day` to `close_date`, of a deal that is won, lost or closed.',
        '42',
        {
          unit: 'days',
          nullMeaning: 'It is open or unknown, one of the days is missing, or it was created later.',
        },
      ),
      probability: column(
        'real',
        'Probability of winning it, from 0 to 1: its own, else that of its stage.',
        '0.6',
        { unit: 'share', nullMeaning: `${NO_FIELD.slice(0, -1)}, or it is outside of 0 to 100 %.` },
      ),
      forecast_category: value('Category of the forecast.', 'Commit'),
      deal_type: value('Type of the deal.', 'New business'),
      lost_reason: value('Why it was lost.', 'Price'),
      next_step: value('Next step.', 'Send the contract'),
      outcome: outcome(
        "By the stages that the settings name, else by the deal's own fields, else by its stage. ",
        'row removed',
      ),
      open_deals: oneDeal('an open'),
      won_deals: oneDeal('a won'),
      lost_deals: oneDeal('a lost'),
      open_amount: amountOf('an open'),
      won_amount: amountOf('a won'),
      lost_amount: amountOf('a lost'),
      object: OBJECT,
    },
  ),
  reportView(
    {
      name: 'companies',
      about: 'One live company of the CRM, with the same columns in every workspace, as in `deals`.',
      label: 'company',
      recounts: [liveRecords('company')],
    },
    {
      company_id: key('Company (`crm_records.id`).', COMPANY_ID, RECORD),
      company: value('Name of the company.', 'Example Ltd'),
      domain: value('Domain of its addresses, in lower case, without `www.`.', 'example.com'),
      ...OWNER,
      object: OBJECT,
    },
  ),
  reportView(
    {
      name: 'contacts',
      about: 'One live contact of the CRM, with the same columns in every workspace, as in `deals`.',
      label: 'contact',
      recounts: [liveRecords('contact')],
    },
    {
      contact_id: key('Contact (`crm_records.id`).', CONTACT_ID, RECORD),
      contact: value(
        'Name of the person, made of first and last name where the whole name is missing.',
        'Jordan Example',
      ),
      email: value('E-mail address, in lower case.', 'jordan@example.com'),
      ...COMPANY,
      ...OWNER,
      is_opted_out: column(
        'boolean',
        '1 for a person who wants no e-mails, or has not agreed to them where the CRM only says who has.',
        '0',
        { ...byField },
      ),
      object: OBJECT,
    },
  ),
]

const DEAL_CHANGES: DescribedTable = (() => {
  const changes = reportView(
    {
      name: 'deal_changes',
      about:
        'One change of a deal that parley observed: two versions of `deal_versions`, one after the other. Of several changes between two reads it has only the last.',
      onDelete: 'kept',
    },
    {
      deal_id: key('Deal (`crm_records.id`).', DEAL_ID, { refersTo: ['crm_records.id'] }),
      seen_at: column('timestamp', 'When parley read it.', '2026-03-04T05:06:07.123Z', { isKey: true }),
      day: day('Local day on which parley read it.', 'The calendar does not reach that far.'),
      days_later: column(
        'integer',
        'By how many days the close date moved; less than 0 if it is earlier.',
        '14',
        {
          unit: 'days',
          nullMeaning: 'One of the two close dates is not set.',
          onDelete: 'purged',
        },
      ),
    },
  )
  const values = ['stage_id', 'stage', 'amount', 'currency', 'close_date', 'outcome']
  const both = DEAL_VERSIONS.columns.flatMap(column =>
    values.includes(column.name)
      ? [{ ...column, name: `${column.name}_before`, about: `\`${column.name}\` before the change.` }, column]
      : [],
  )
  return { ...changes, columns: [...changes.columns, ...both] }
})()

/** The days of `periods`, for questions about the days of a period. */
const PERIOD_DAYS: DescribedTable = (() => {
  const days = reportView(
    {
      name: 'period_days',
      onDelete: null,
      about: 'One day of one named period of `periods`, with the columns of `calendar`. Join it by `day`.',
    },
    {
      period: column('text', 'Name of the period.', 'last quarter', { isKey: true }),
      days_ago: column('integer', 'Days from it to `periods.today`.', '21', { unit: 'days' }),
    },
  )
  return { ...days, columns: [...days.columns, ...columnsOf(DERIVED_TABLES, 'calendar')] }
})()

const PERIOD_COVERAGE = reportView(
  {
    name: 'period_coverage',
    onDelete: null,
    about:
      'One resource in one named period of `periods`: whether all of it was read. Items that the API does not have ready yet are not missing.',
  },
  {
    period: key('Name of the period.', 'last month'),
    resource: key('Name of the resource.', 'messages'),
    complete: column('text', '`yes`, or why it is not complete.', 'yes'),
    as_of: column(
      'timestamp',
      'The instant to quote: items that were published later may be missing.',
      '2026-07-01T05:06:07.123Z',
      { nullMeaning: 'Nothing was read to its end.' },
    ),
    parts: column('integer', 'Parts of it, as in `sync_coverage`.', '2', { unit: 'parts' }),
    parts_read: column('integer', 'Parts that were read to their end.', '2', { unit: 'parts' }),
    still_to_read: column('integer', 'Details or texts that are still to be read.', '0', {
      unit: 'reads',
      nullMeaning: 'The resource has no details and no texts.',
    }),
  },
)

/** The columns of `record_activity` that the views with facts have. */
export const HAPPENED = {
  numbers: ['meetings', 'mails', 'mails_in', 'mails_out', 'engaged_people'],
  days: ['first_meeting_day', 'last_day', 'last_theirs_day', 'last_two_way_day'],
}

/** The view of live records with what happened with each of them, for questions about both. */
const factsOf = (
  records: string,
  label: string,
  more: Readonly<Record<string, ColumnLine>>,
  note = '',
): DescribedTable => {
  const facts = reportView(
    {
      name: `${label}_facts`,
      about: `One live ${label} as in \`${records}\`, with what happened with it. It takes longer than \`${records}\`, so ask it for columns that only it has.${note}`,
      label,
    },
    {
      days_silent: column('integer', 'Days from `last_day` to `periods.today`.', '21', {
        unit: 'days',
        nullMeaning: '`last_day` is NULL.',
      }),
      ...more,
    },
  )
  const happened = columnsOf(PEOPLE_TABLES, 'record_activity', Object.values(HAPPENED).flat())
  return { ...facts, columns: [...columnsOf(DEAL_VIEWS, records), ...happened, ...facts.columns] }
}

const deals = (about: string): ColumnLine => column('integer', about, '2', { unit: 'deals' })

export const FACT_VIEWS: readonly DescribedTable[] = [
  factsOf('deals', 'deal', {
    slips: column(
      'integer',
      'How often parley observed that the close date moved later, also of a closed deal: `deal_changes` has the `outcome` at each time. A date that was removed is none.',
      '2',
      { unit: 'changes' },
    ),
    is_past_close_date: column(
      'boolean',
      '1 for an open deal whose close date is before `periods.today`.',
      '0',
    ),
    days_from_meeting: column(
      'integer',
      'Days from `first_meeting_day` to `close_date`, of a deal that is won, lost or closed.',
      '42',
      {
        unit: 'days',
        nullMeaning: 'It is open or unknown, one of the days is missing, or the meeting was later.',
      },
    ),
  }),
  factsOf('companies', 'company', {
    days_since_two_way: column('integer', 'Days from `last_two_way_day` to `periods.today`.', '21', {
      unit: 'days',
      nullMeaning: '`last_two_way_day` is NULL.',
    }),
    open_deals: deals('Open deals of the company.'),
    open_amount: column('real', 'What they are worth (`deals.amount_reporting`).', '120000', {
      unit: '`reporting.currency`',
      nullMeaning: 'None of them has an amount in that currency.',
    }),
    unknown_deals: deals('Deals of the company of which nothing says whether they are open.'),
    withheld_meetings: column(
      'integer',
      'Withheld meetings of the company after `last_two_way_day`: they may have been contact.',
      '1',
      { unit: 'meetings' },
    ),
    is_partner: column('boolean', '1 when a person of the company is a `partner` in `parties`.', '0'),
  }),
  factsOf(
    'contacts',
    'contact',
    {},
    ' What happened with one of several contacts that have one address: see `record_conversations`.',
  ),
]

export const REPORT_VIEWS: readonly DescribedTable[] = [
  ...DEAL_VIEWS,
  DEAL_CHANGES,
  PERIOD_DAYS,
  PERIOD_COVERAGE,
  ...FACT_VIEWS,
  ...CONVERSATION_VIEWS,
]

export const REPORT_TABLES: readonly DescribedTable[] = [
  ...REPORT_VIEWS,
  ...DERIVED_TABLES,
  describedBookkeeping(REPORT_SETTING_TABLE, { area: 'reports' }),
  describedBookkeeping(REPORT_CHANGE_TABLE, { area: 'reports' }),
  ...PEOPLE_VERSIONS,
  describedBookkeeping(METRIC_TABLE, { area: 'reports', label: 'label' }),
]
