import { MEMBER_VERSION_TABLE, TEAM_VERSION_TABLE } from '../catalog/bookkeeping/people-versions.ts'
import {
  type ColumnDetails,
  type ColumnLine,
  column,
  type DescribedTable,
  reportTable,
} from './described-table.ts'
import { describedBookkeeping } from './sync-tables.ts'

/** Descriptions of the tables that keep how members, teams and deals were at any time. */

export const PEOPLE_VERSIONS: readonly DescribedTable[] = [
  describedBookkeeping(MEMBER_VERSION_TABLE, { area: 'reports', label: 'name' }),
  describedBookkeeping(TEAM_VERSION_TABLE, { area: 'reports', label: 'team' }),
]

const NO_VALUE =
  'The deal had no value, or no field of the CRM holds it; it was deleted; or the value was purged.'

const value = (
  kind: 'text' | 'real' | 'date',
  about: string,
  example: string,
  details?: ColumnDetails,
): ColumnLine =>
  column(kind, about, example, {
    nullMeaning: NO_VALUE,
    nullMeaningIsTables: true,
    onDelete: 'purged',
    ...details,
  })

const NOT_OVER = 'It is the present one.'
const NO_DAY = 'The calendar does not reach that far.'

const COMMON = [
  ...['pipeline_id', 'stage_id', 'stage', 'amount', 'currency', 'close_date', 'owner_id'],
  ...['forecast_category', 'outcome'],
]

export const DEAL_VERSIONS: DescribedTable = reportTable(
  {
    name: 'deal_versions',
    about:
      'One deal between two changes of it that parley observed, computed from `crm_record_changes` by the rules of `deals` of today. How the pipeline was at the end of a day: `from_day <= DAY AND (to_day > DAY OR to_day IS NULL)`. A value is NULL where the deal had none, where no field of the CRM holds it, after the deletion, and when it was purged.',
    sortable: ['deal_id'],
    recounts: [
      {
        about: 'the present versions are those of deals',
        key: ['deal_id'],
        values: COMMON,
        ours: `SELECT deal_id, ${COMMON.join(', ')} FROM deal_versions WHERE to_at IS NULL AND outcome <> 'gone'`,
        base: `SELECT deal_id, ${COMMON.join(', ')} FROM deals`,
      },
    ],
    label: 'stage',
    onDelete: 'kept',
  },
  {
    deal_id: column('text', 'Deal (`crm_records.id`).', 'c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d', {
      isKey: true,
      refersTo: ['crm_records.id'],
    }),
    from_at: column(
      'timestamp',
      'When it began: when parley read it. The first version of a deal begins when parley first read the deal, not with the deal.',
      '2026-03-04T05:06:07.123Z',
      { isKey: true },
    ),
    to_at: column('timestamp', 'When the next version began.', '2026-03-09T05:06:07.123Z', {
      nullMeaning: NOT_OVER,
      onDelete: 'set',
    }),
    from_day: column('date', 'Local day of `from_at`.', '2026-03-04', { nullMeaning: NO_DAY }),
    to_day: column('date', 'Local day of `to_at`: at its end this was not so any more.', '2026-03-09', {
      nullMeaning: `${NOT_OVER.slice(0, -1)}, or the calendar does not reach that far.`,
      onDelete: 'set',
    }),
    is_last_of_day: column(
      'boolean',
      '1 when it was still so at the end of `from_day`; 0 when another version began on the same day.',
      '1',
    ),
    is_first_read: column('boolean', '1 for the first version of a deal.', '0'),
    pipeline_id: value('text', 'Pipeline.', '0d9c3f1e-6a57-4b8e-9a3c-2f1e0d9c8b7a', {
      refersTo: ['pipelines.pipeline_id'],
    }),
    stage_id: value('text', 'Stage.', 'f5d4b9e7-30b1-4280-8e6d-81a24d5e6f70', {
      refersTo: ['stage_outcomes.stage_id'],
    }),
    stage: value('text', 'Name of the stage, as it is called now.', 'Proposal'),
    amount: value('real', 'What it was worth.', '120000', { unit: '`currency`' }),
    currency: value('text', 'Currency of the amount, in capitals.', 'EUR'),
    close_date: value('date', 'Day on which it was expected to close, or closed.', '2026-03-31'),
    owner_id: value('text', 'Member who owned it.', 'mem_1', { refersTo: ['members.id'] }),
    forecast_category: value('text', 'Category of the forecast.', 'Commit'),
    outcome: column(
      'text',
      '`open`, `won`, `lost`, `closed` or `unknown`, as in `deals`; `gone`: the deal was deleted, or is not published any more. Unknown is never open. A deal that comes back counts as never gone.',
      'open',
    ),
  },
)
