/** The numbers that reports agree on: the source of the table `metrics` and of `parley schema --ossie`. Pure. */

export interface Metric {
  name: string
  label: string
  /** A table or view for reports that is published. */
  dataset: string
  /**
   * An aggregate that skips NULL. It must run unchanged in SQLite, DuckDB, Spark and Trino. These differ: days are text
   * or dates, flags are numbers or booleans, and a division of whole numbers may drop the remainder.
   * @param of returns what stands in the aggregate for a value or `*`: the same text where `filter` is in WHERE
   */
  expression(of: (value: string) => string): string
  /** SQL condition of the rows that count. It names the outcomes that count, since unknown is neither won nor open. */
  filter: string
  unit: string
  isAdditive: boolean
  description: string
  caveat: string
}

const MONEY = '`reporting.currency`'
const SHARE = 'share'

/**
 * The share of rows that meet a condition: a double everywhere, and NULL without rows, where Trino fails at a division
 * by 0.
 */
const shareOf = (condition: string) => (of: (value: string) => string) =>
  `avg(${of(`CASE WHEN ${condition} THEN 1e0 ELSE 0e0 END`)})`

const shareOfSum = (value: string, condition: string) => (of: (value: string) => string) =>
  `sum(${of(`CASE WHEN ${condition} THEN ${value} ELSE 0e0 END`)}) / nullif(sum(${of(value)}), 0e0)`

const count = (of: (value: string) => string) => `count(${of('*')})`
const mean = (value: string) => (of: (value: string) => string) => `avg(${of(value)})`

const BY_CLOSE_DATE = 'For a period add a condition on `close_date`.'
const BY_DAY = 'For a period add a condition on `day`.'
const NOT_DECIDED =
  'Deals that are closed in an unknown way, or whose outcome is unknown, are in neither number.'
const WITHOUT_AMOUNT = 'A deal without an amount, or in a currency without a rate, adds nothing.'
const MEAN = 'It is a mean, not a median: a few large values move it.'

export const METRICS: readonly Metric[] = [
  {
    name: 'open_pipeline',
    label: 'Open pipeline',
    dataset: 'deals',
    expression: of => `sum(${of('amount_reporting')})`,
    filter: "outcome = 'open'",
    unit: MONEY,
    isAdditive: true,
    description: `What the open deals of all pipelines are worth. ${BY_CLOSE_DATE}`,
    caveat: `${WITHOUT_AMOUNT} Deals whose outcome is unknown are not open.`,
  },
  {
    name: 'open_deals',
    label: 'Open deals',
    dataset: 'deals',
    expression: count,
    filter: "outcome = 'open'",
    unit: 'deals',
    isAdditive: true,
    description: `Open deals of all pipelines. ${BY_CLOSE_DATE}`,
    caveat: 'Deals whose outcome is unknown are not open.',
  },
  ...(['sales', 'renewal'] as const).flatMap((kind): Metric[] => {
    const [name, label] = kind === 'sales' ? ['win_rate', 'Win rate'] : ['renewal_rate', 'Renewal rate']
    const common = {
      dataset: 'deals',
      filter: `pipeline_kind = '${kind}' AND outcome IN ('won', 'lost')`,
      unit: SHARE,
      isAdditive: false,
    }
    return [
      {
        ...common,
        name,
        label,
        expression: shareOf("outcome = 'won'"),
        description: `Won deals among the won and lost ones of ${kind} pipelines. ${BY_CLOSE_DATE}`,
        caveat: NOT_DECIDED,
      },
      {
        ...common,
        name: `${name}_by_amount`,
        label: `${label} by amount`,
        expression: shareOfSum('amount_reporting', "outcome = 'won'"),
        description: `The same by amount: what the won deals are worth among the won and lost ones. ${BY_CLOSE_DATE}`,
        caveat: `${WITHOUT_AMOUNT} ${NOT_DECIDED}`,
      },
    ]
  }),
  {
    name: 'cycle_days',
    label: 'Sales cycle',
    dataset: 'deals',
    expression: mean('days_to_close'),
    filter: "pipeline_kind = 'sales' AND outcome = 'won' AND days_to_close >= 0",
    unit: 'days',
    isAdditive: false,
    description: `Mean days from the creation of a won deal of sales pipelines to its close date. ${BY_CLOSE_DATE}`,
    caveat: `${MEAN} Deals without one of the days, and those that were created after their close date, are not counted.`,
  },
  {
    name: 'meetings_held',
    label: 'Meetings held',
    dataset: 'conversations',
    expression: count,
    filter: "kind = 'meeting' AND is_external",
    unit: 'meetings',
    isAdditive: true,
    description: `Meetings with people of theirs. ${BY_DAY}`,
    caveat:
      'A meeting is not counted where no one is known to be theirs, such as a withheld one. One that is dated after today counts, unless a condition on `day` leaves it out.',
  },
  {
    name: 'mails_sent',
    label: 'E-mails sent',
    dataset: 'conversations',
    expression: count,
    filter: "kind = 'mail' AND side = 'ours' AND is_external",
    unit: 'e-mails',
    isAdditive: true,
    description: `E-mails from us to people of theirs, each once however many copies it has. ${BY_DAY}`,
    caveat: 'An e-mail is not counted where no recipient is known to be theirs. E-mails to groups count.',
  },
  {
    name: 'reply_hours',
    label: 'Reply time',
    dataset: 'mail_questions',
    expression: mean('work_hours'),
    filter: "side = 'theirs' AND is_counted AND answered_mail_id IS NOT NULL",
    unit: 'hours',
    isAdditive: false,
    description:
      'Mean working hours from the first e-mail of theirs that waits to our answer. For a period add a condition on `day`, on which it was asked.',
    caveat: `${MEAN} What still waits, e-mails without a thread and to groups only, and answers after more than \`reporting.reply_limit_days\` are not counted.`,
  },
  {
    name: 'rep_talk_ratio',
    label: 'Talk ratio of reps',
    dataset: 'conversation_people',
    expression: mean('speaker_ratio'),
    filter: "kind = 'meeting' AND is_external AND member_id IS NOT NULL",
    unit: SHARE,
    isAdditive: false,
    description: `Mean share of the talking time that a member has in a meeting with people of theirs, each member in each meeting counting alike. ${BY_DAY}`,
    caveat:
      'A member whose name no speaker has, or two people of the meeting have, is not counted in that meeting. The API does not state the unit of the shares: where they are per cent, so is this.',
  },
  {
    name: 'team_talk_ratio',
    label: 'Talk ratio of our side',
    dataset: 'conversation_people',
    expression: shareOfSum('speaker_ratio', "side = 'ours'"),
    filter: "kind = 'meeting' AND is_external",
    unit: SHARE,
    isAdditive: false,
    description: `Share of our side in the talking time of meetings with people of theirs. ${BY_DAY}`,
    caveat:
      'Speakers who match no attendee, such as a room or a telephone, count as not ours, and so does a name that two people of a meeting have.',
  },
  {
    name: 'silent_deals',
    label: 'Silent deals',
    dataset: 'deal_facts',
    expression: count,
    filter: "outcome = 'open' AND (days_silent >= 30 OR days_silent IS NULL)",
    unit: 'deals',
    isAdditive: true,
    description: 'Open deals without an e-mail or a meeting for 30 days, or without any.',
    caveat:
      'Only conversations that belong to the deal are seen. Calls and notes in the CRM are no conversations.',
  },
  {
    name: 'overdue_promises',
    label: 'Overdue promises',
    dataset: 'promises',
    expression: count,
    filter: 'is_overdue',
    unit: 'action items',
    isAdditive: true,
    description: 'Action items of meetings that were due before today and are not completed.',
    caveat: 'Action items without a due day are never overdue. Meetings that cannot be read show none.',
  },
  {
    name: 'crm_link_coverage',
    label: 'Link to the CRM',
    dataset: 'conversations',
    expression: shareOf('is_linked'),
    filter: 'is_external',
    unit: SHARE,
    isAdditive: false,
    description: `Share of the e-mails and meetings with people of theirs that belong to a CRM record. ${BY_DAY}`,
    caveat:
      'A contact who takes part is no link. Conversations where no one is known to be theirs are not counted.',
  },
]

/** A row of `metrics`, in the order of its columns. */
export const metricRows = (): (string | number)[][] =>
  METRICS.map(({ name, label, dataset, expression, filter, unit, isAdditive, description, caveat }) => [
    ...[name, label, dataset, expression(value => value), filter, unit],
    ...[isAdditive ? 1 : 0, description, caveat],
  ])
