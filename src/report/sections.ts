import type { ResourceName } from '../declare/resource-names.ts'
import { fromBefore } from '../health/completeness.ts'
import { countText, isAre } from '../terminal/wording.ts'
import { numberText } from './chart.ts'

/** What a report shows: the shipped questions, which of their columns are drawn, and what is said next to them. Data. */

export type ReportRow = Readonly<Record<string, string | number | null>>

/** What the sentences of all sections depend on, besides rows. */
export interface ReportFacts {
  /** Whether an object of the CRM holds deals. */
  hasDeals: boolean
  /** `reporting.currency` */
  currency: string | null
  /** The instant from which on there are e-mails and activities, where `sync.since` leaves out earlier ones. */
  since: string | null
}

export interface SectionPlan {
  /** The name of the shipped question. */
  question: string
  title: string
  /** The tables that the question reads. */
  reads: 'deals' | 'conversations'
  /** The resources without which it counts too little, in the words of the report. */
  counts?: Readonly<Partial<Record<ResourceName, string>>>
  charts: readonly ChartPlan[]
  /** The main figure as a sentence; null where there are no figures. */
  headline(rows: readonly ReportRow[], facts: ReportFacts): string | null
  notes: readonly NotePlan[]
}

/**
 * Something that is unknown or not counted: a number in the rows, or one that other SQL counts. A second column of the
 * SQL is the total `of`.
 */
export type NotePlan = { says(count: number, of: number, facts: ReportFacts): string } & (
  | { count(rows: readonly ReportRow[]): number }
  | { sql: string }
)

export type ChartPlan = BarsPlan | LinesPlan

/** A bar for each row, one chart for each value of `panel`. */
export interface BarsPlan {
  kind: 'bars'
  title: string
  label: readonly string[]
  panel?: string
  /** The names of the parts of a bar, by column. */
  parts: Readonly<Record<string, string>>
  /** The column of the whole bar, where the parts do not fill it, and the name of the rest. */
  whole?: { column: string; rest: string }
  /** A text that follows the label, in brackets. */
  detail?(row: ReportRow): string
  /** The text at the bar. */
  text(row: ReportRow): string
  /** Which rows are drawn. */
  has(row: ReportRow): boolean
}

/** A line for each column, or for each value of `series` of the only column. */
export interface LinesPlan {
  kind: 'lines'
  title: string
  x: string
  series?: string
  /** By column, or by value of `series`: the name of the line. A value that is not here is its own name. */
  names: Readonly<Record<string, string>>
  /** The column with the values of a `series`. */
  value?: string
  unit: string
}

const numberIn = (row: ReportRow, column: string): number => Number(row[column] ?? 0)

const sumOf = (rows: readonly ReportRow[], column: string): number =>
  rows.reduce((sum, row) => sum + numberIn(row, column), 0)

const NO_DEALS = 'There are no deals.'

const OUTCOME_UNKNOWN: NotePlan = {
  count: rows => sumOf(rows, 'outcome_unknown'),
  says: count =>
    `${countText(count, 'deal')} ${isAre(count)} not counted, since nothing says whether ${count === 1 ? 'it is' : 'they are'} open.`,
}

/** SQL for the number of open deals with an amount that was not converted. */
const unconverted = (condition: string): string =>
  `SELECT count(*) FROM deals WHERE outcome = 'open' AND amount IS NOT NULL AND amount_reporting IS NULL AND ${condition}
   AND EXISTS (SELECT 1 FROM report_settings WHERE name = 'reporting.currency' AND value IS NOT NULL)`

const NO_DEAL_OBJECT: NotePlan = {
  sql: "SELECT NOT EXISTS (SELECT 1 FROM report_settings WHERE name = 'crm.deal.object' AND value IS NOT NULL)",
  says: () =>
    'There is no object of deals in the CRM, or the CRM was not read yet. If its deals have another name, set crm.deal.object.',
}

const OWNERS_LEFT: NotePlan = {
  sql: "SELECT count(*) FROM deals WHERE outcome = 'open' AND owner_state = 'left'",
  says: count =>
    `${countText(count, 'open deal')} ${count === 1 ? 'belongs' : 'belong'} to members who have left.`,
}

const OWNERS_UNKNOWN: NotePlan = {
  sql: "SELECT count(*) FROM deals WHERE outcome = 'open' AND owner_state = 'unknown'",
  says: count =>
    `Of ${countText(count, 'open deal')} nothing says whether the owner is a member, since members were not read. Read them with sync.resources.`,
}

const WITHHELD: NotePlan = {
  sql: "SELECT count(*) FROM conversations c JOIN period_days p ON p.day = c.day WHERE p.period = 'last 365 days' AND c.kind = 'meeting' AND NOT c.is_readable",
  says: count =>
    `${countText(count, 'meeting')} of the last 365 days ${isAre(count)} withheld: only attendees may read ${count === 1 ? 'it' : 'them'}.`,
}

const SIDE_UNKNOWN: NotePlan = {
  sql: "SELECT count(*) FROM conversations c JOIN period_days p ON p.day = c.day WHERE p.period = 'last 365 days' AND (c.kind = 'mail' OR c.is_readable) AND c.is_external IS NULL",
  says: count =>
    `Of ${countText(count, 'conversation')} of the last 365 days nothing says whether people of another company took part.`,
}

const BY_LEAVERS: NotePlan = {
  sql: "SELECT count(*) FROM conversations c JOIN period_days p ON p.day = c.day JOIN people s ON s.person_id = c.person_id WHERE p.period = 'last 90 days' AND s.side = 'ours' AND NOT coalesce(s.is_member_now, 0) AND EXISTS (SELECT 1 FROM members)",
  says: count =>
    `${countText(count, 'conversation')} of the last 90 days ${count === 1 ? 'belongs' : 'belong'} to senders and owners of our side who are no members now, and ${isAre(count)} in no team.`,
}

const WITHOUT_TEAM: NotePlan = {
  sql: 'SELECT count(*) FROM live_members m WHERE NOT EXISTS (SELECT 1 FROM live_team_members t WHERE t.member_id = m.id)',
  says: count =>
    `${countText(count, 'member')} ${isAre(count)} in no team, so that no line has what they did.`,
}

const UNDATED: NotePlan = {
  sql: 'SELECT count(*) FROM conversations WHERE day IS NULL',
  says: count => `${countText(count, 'conversation')} without a time ${isAre(count)} in no week.`,
}

const NO_CRM_LINK: NotePlan = {
  sql: "SELECT count(CASE WHEN NOT c.is_linked THEN 1 END), count(*) FROM conversations c JOIN period_days p ON p.day = c.day WHERE p.period = 'last 90 days' AND c.kind = 'meeting' AND c.is_external",
  says: (count, of) =>
    `${numberText(count)} of ${countText(of, 'meeting')} (${numberText((100 * count) / of)} %) of the last 90 days with people of other companies ${count === 1 ? 'belongs' : 'belong'} to no record of the CRM.`,
}

export const REPORT_SECTIONS: readonly SectionPlan[] = [
  {
    question: 'open-deals-by-stage',
    title: 'Pipeline',
    reads: 'deals',
    charts: [
      {
        kind: 'bars',
        title: 'Amount of open deals by stage',
        label: ['pipeline', 'stage'],
        panel: 'currency',
        parts: { amount: 'amount' },
        has: row => numberIn(row, 'deals') > 0,
        detail: row => countText(numberIn(row, 'deals'), 'deal'),
        text: row => numberText(numberIn(row, 'amount')),
      },
    ],
    headline(rows, { hasDeals, currency: reporting }) {
      if (!hasDeals) return NO_DEALS
      const open = rows.filter(row => numberIn(row, 'deals') > 0)
      if (open.length === 0) return 'No deal is open.'
      const currencies = [...new Set(open.map(row => row['currency'] ?? null))]
      const amounts = currencies.map(currency => {
        const amount = sumOf(
          open.filter(row => (row['currency'] ?? null) === currency),
          'amount',
        )
        return `${numberText(amount)} ${currency ?? 'without a currency'}`
      })
      const count = sumOf(open, 'deals')
      const isConverted = open.some(row => row['currency'] != null && row['amount_reporting'] != null)
      const converted =
        isConverted && reporting !== null
          ? ` Converted, these are ${numberText(sumOf(open, 'amount_reporting'))} in ${reporting}.`
          : ''
      return `${countText(count, 'deal')} ${isAre(count)} open: ${amounts.join(', ')}.${converted}`
    },
    notes: [
      {
        count: rows => sumOf(rows, 'without_amount'),
        says: count =>
          `${countText(count, 'open deal')} without an amount ${count === 1 ? 'counts' : 'count'} with 0.`,
      },
      OUTCOME_UNKNOWN,
      {
        sql: unconverted('currency IS NOT NULL'),
        says: count =>
          `The amounts of ${countText(count, 'open deal')} are not in amount_reporting, since reporting.rates has no rate for their currency.`,
      },
      {
        sql: unconverted('currency IS NULL'),
        says: count =>
          `The amounts of ${countText(count, 'open deal')} are not in amount_reporting, since their currency is not known.`,
      },
      OWNERS_LEFT,
      OWNERS_UNKNOWN,
      NO_DEAL_OBJECT,
    ],
  },
  {
    question: 'activity-by-team-and-week',
    title: 'Activity',
    reads: 'conversations',
    counts: { teams: 'teams', messages: 'e-mails', meetings: 'meetings' },
    charts: [
      {
        kind: 'lines',
        title: 'E-mails to customers by week',
        x: 'week',
        series: 'team',
        value: 'mails',
        names: {},
        unit: 'e-mails',
      },
      {
        kind: 'lines',
        title: 'Meetings with customers by week',
        x: 'week',
        series: 'team',
        value: 'meetings',
        names: {},
        unit: 'meetings',
      },
    ],
    headline(rows) {
      const week = rows
        .map(row => String(row['week']))
        .sort()
        .at(-1)
      if (week === undefined) return 'There is no whole week, or no team.'
      // A conversation counts for each team that takes part, so the teams cannot be added up.
      const all = (row: ReportRow) => numberIn(row, 'mails') + numberIn(row, 'meetings')
      const [most, next] = rows
        .filter(row => row['week'] === week)
        .toSorted((one, other) => all(other) - all(one))
      if (!most || all(most) === 0)
        return `In the week of ${week}, no team had e-mails to customers or meetings with them.`
      return `In the week of ${week}, ${most['team']} had ${next && all(next) === all(most) ? 'as much as any other team' : 'the most'}: ${countText(numberIn(most, 'mails'), 'e-mail')} to customers and ${countText(numberIn(most, 'meetings'), 'meeting')} with them.`
    },
    notes: [WITHHELD, SIDE_UNKNOWN, WITHOUT_TEAM, BY_LEAVERS, UNDATED],
  },
  {
    question: 'response-times-by-month',
    title: 'Reply times',
    reads: 'conversations',
    counts: { messages: 'e-mails' },
    charts: [
      {
        kind: 'lines',
        title: 'Working hours until an e-mail is answered (median)',
        x: 'month',
        series: 'answered_by',
        value: 'median_work_hours',
        names: { ours: 'our answers', theirs: 'their answers' },
        unit: 'hours',
      },
    ],
    headline(rows) {
      const row = rows.findLast(each => each['answered_by'] === 'ours')
      return row === undefined
        ? 'We have answered no e-mail.'
        : `In ${row['month']}, half of our answers came within ${numberText(numberIn(row, 'median_work_hours'))} working hours (${countText(numberIn(row, 'answers'), 'answer')}).`
    },
    notes: [
      {
        sql: 'SELECT count(*) FROM mail_questions WHERE NOT is_counted',
        says: count =>
          `${countText(count, 'e-mail')} of all times ${isAre(count)} not counted: e-mails to groups alone, and answers after more than reporting.reply_limit_days.`,
      },
      {
        sql: "SELECT count(*) FROM mail_questions WHERE is_counted AND answered_at IS NULL AND side = 'theirs'",
        says: count =>
          `${countText(count, 'e-mail')} of theirs ${count === 1 ? 'has' : 'have'} no answer yet and ${isAre(count)} in no month. Not every e-mail asks for one.`,
      },
      SIDE_UNKNOWN,
    ],
  },
  {
    question: 'talk-ratio-by-month',
    title: 'Talk ratio',
    reads: 'conversations',
    counts: { meetings: 'meetings' },
    charts: [
      {
        kind: 'lines',
        title: 'Share of the talking time in meetings with customers',
        x: 'month',
        names: {
          ours_percent: 'our side',
          theirs_percent: 'their side',
          other_percent: 'not known, or partners',
        },
        unit: '%',
      },
    ],
    headline(rows) {
      const row = rows.findLast(each => each['ours_percent'] !== null)
      return row === undefined
        ? 'Of no meeting with customers is it known who spoke how much.'
        : `In ${row['month']}, our side spoke ${numberText(numberIn(row, 'ours_percent'))} % of the time, in ${countText(numberIn(row, 'with_speakers'), 'meeting')}.`
    },
    notes: [
      {
        count: rows => sumOf(rows, 'meetings') - sumOf(rows, 'with_speakers'),
        says: count =>
          `${countText(count, 'meeting')} with customers ${count === 1 ? 'has' : 'have'} no shares of speakers.`,
      },
      {
        count: rows => sumOf(rows, 'not_known'),
        says: count =>
          `${countText(count, 'meeting')} ${isAre(count)} not counted: withheld, or nothing says who took part.`,
      },
    ],
  },
  {
    question: 'deals-without-activity',
    title: 'Silent deals',
    reads: 'conversations',
    counts: { activities: 'activities', messages: 'e-mails', meetings: 'meetings' },
    charts: [
      {
        kind: 'bars',
        title: 'Days without an e-mail or a meeting',
        label: ['deal'],
        parts: { days_silent: 'days' },
        has: row => row['days_silent'] !== null,
        text: row => countText(numberIn(row, 'days_silent'), 'day'),
      },
    ],
    headline(rows, { hasDeals }) {
      if (!hasDeals) return NO_DEALS
      return rows.length === 0
        ? 'No open deal is silent.'
        : `${countText(rows.length, 'deal')} ${isAre(rows.length)} silent.`
    },
    notes: [
      {
        count: rows => rows.filter(row => row['days_silent'] === null).length,
        says: (count, _of, { since }) =>
          `${numberText(count)} of these deals ${count === 1 ? 'has' : 'have'} no e-mail and no meeting here${since === null ? '' : `, where items ${fromBefore(since)} are left out`}.`,
      },
      {
        count: rows => rows.filter(row => row['outcome'] === 'unknown').length,
        says: count =>
          `Of ${numberText(count)} of these deals nothing says whether ${count === 1 ? 'it is' : 'they are'} open.`,
      },
      {
        count: rows => rows.filter(row => row['owner_state'] === 'left').length,
        says: count =>
          `${numberText(count)} of these deals ${count === 1 ? 'belongs' : 'belong'} to members who have left.`,
      },
      OWNERS_UNKNOWN,
      NO_DEAL_OBJECT,
    ],
  },
  {
    question: 'crm-quality',
    title: 'Quality of the CRM',
    reads: 'conversations',
    charts: [
      {
        kind: 'bars',
        title: 'Open deals in order, by owner',
        label: ['owner'],
        parts: { in_order: 'in order' },
        whole: { column: 'open_deals', rest: 'something is missing' },
        has: row => numberIn(row, 'open_deals') > 0,
        text: row => `${numberText(numberIn(row, 'in_order'))} of ${numberText(numberIn(row, 'open_deals'))}`,
      },
    ],
    headline(rows, { hasDeals }) {
      if (!hasDeals) return NO_DEALS
      const [fine, all] = [sumOf(rows, 'in_order'), sumOf(rows, 'open_deals')]
      return all === 0
        ? 'No deal is open.'
        : `${numberText(fine)} of ${countText(all, 'open deal')} (${numberText((100 * fine) / all)} %) ${isAre(fine)} in order: with an owner who is a member, an amount, a next step and a close date to come.`
    },
    notes: [OUTCOME_UNKNOWN, OWNERS_LEFT, OWNERS_UNKNOWN, NO_CRM_LINK, NO_DEAL_OBJECT],
  },
]
