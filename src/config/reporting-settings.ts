import { CRM_ROLES, type CrmRole, type RoleObject } from './crm-roles.ts'
import * as kinds from './kinds.ts'

/**
 * The settings for reports: `[reporting]`, and the sections that say which fields of the CRM hold what. These settings
 * have no flags. A field that is not set is guessed from the CRM's metadata.
 */

export const REPORTING_SECTIONS = {
  reporting: 'Days, quarters and currencies of the tables and views for reports.',
  'crm.deal': 'Which CRM object holds deals, and which of its fields hold what.',
  'crm.company': 'Which CRM object holds companies, and which of its fields hold what.',
  'crm.contact': 'Which CRM object holds contacts, and which of their fields hold what.',
} as const

const ROLE_KIND = kinds.text('the name of a field, as in `crm_fields.name`, or "none"', /^\S(.*\S)?$/s)
const OBJECT_KIND = kinds.text('the name of a CRM object, as in `crm_objects.name`', /^\S(.*\S)?$/s)

const roleSetting = ({ holds, example }: CrmRole) => ({
  kind: ROLE_KIND,
  without: 'guessed',
  description: `The field with ${holds}.`,
  example: JSON.stringify(example),
})

/** One setting for each role, such as `crm.deal.amount`. */
function roleSettings<O extends RoleObject>(object: O) {
  const roles = Object.entries<CrmRole>(CRM_ROLES[object])
  const settings = roles.map(([role, about]) => [`crm.${object}.${role}`, roleSetting(about)])
  return Object.fromEntries(settings) as Readonly<
    Record<`crm.${O}.${string & keyof (typeof CRM_ROLES)[O]}`, ReturnType<typeof roleSetting>>
  >
}

const objectSetting = <O extends RoleObject>(object: O, standard: string) => ({
  kind: OBJECT_KIND,
  without: `${object}, unless the workspace has made that object`,
  description: `The CRM object that holds ${standard}.`,
  example: JSON.stringify(object),
})

const stageList = (outcome: string, example: string) => ({
  kind: kinds.textList('stages'),
  without: 'guessed',
  description: `The stages of ${outcome} deals: each by its id, its name, or as \`Pipeline/Stage\`. They decide before what deals and stages say about themselves; a stage that no setting names is still guessed. In the environment, separate them with commas.`,
  example,
})

const pipelineList = (kind: string, without: string, example: string) => ({
  kind: kinds.textList('pipelines'),
  without,
  description: `The pipelines of ${kind}, by id or by name. In the environment, separate them with commas.`,
  example,
})

/** The API does not say how the product words a missing answer. */
export const NO_ANSWERS: readonly string[] = [
  ...['-', 'n/a', 'unknown', 'not discussed', 'not mentioned', 'not answered', '言及なし', '不明'],
]

export const REPORTING_SETTINGS = {
  'reporting.time_zone': {
    kind: kinds.timeZone,
    default: 'UTC',
    description: 'The time zone in which days begin.',
    example: '"Asia/Tokyo"',
  },
  'reporting.week_start': {
    kind: kinds.oneOf(...kinds.WEEKDAYS),
    default: 'monday',
    description: 'The first day of a week.',
    example: '"sunday"',
  },
  'reporting.fiscal_year_start': {
    kind: kinds.number({ whole: true, min: 1, max: 12 }),
    default: 1,
    unit: 'months',
    description: 'The month in which the fiscal year begins.',
    example: '4',
  },
  'reporting.fiscal_year_named_by': {
    kind: kinds.oneOf('start', 'end'),
    default: 'start',
    description:
      'Whether a fiscal year that begins in one calendar year and ends in the next has the number of the first or of the second.',
    example: '"end"',
  },
  'reporting.workdays': {
    kind: kinds.weekdayList,
    without: 'Monday to Friday',
    description: 'The days on which people work. In the environment, separate them with commas.',
    example: '["sunday", "monday", "tuesday", "wednesday", "thursday"]',
  },
  'reporting.holidays': {
    kind: kinds.dayList,
    description: 'Days without work. In the environment, separate them with commas.',
    example: '["2026-12-25", "2027-01-01"]',
  },
  'reporting.work_from': {
    kind: kinds.timeOfDay,
    default: '09:00',
    description: 'When work begins on a workday, in local time.',
    example: '"08:30"',
  },
  'reporting.work_to': {
    kind: kinds.timeOfDay,
    default: '18:00',
    description:
      'When work ends on a workday, in local time: later than `reporting.work_from`, on the same day. 24:00 is the end of the day.',
    example: '"17:30"',
  },
  'reporting.reply_limit_days': {
    kind: kinds.number({ whole: true, min: 1, max: 3650 }),
    default: 30,
    unit: 'days',
    description:
      'An e-mail that is answered after more days takes up an old conversation: it is in `mail_questions`, and not counted as a reply.',
    example: '14',
  },
  'reporting.no_answers': {
    kind: kinds.textList('answers'),
    without: 'a list in English and Japanese',
    description: `Answers to questions of playbooks that say nothing, without full stops: \`playbook_answers.state\` is \`unanswered\`. A to Z may be capital or small. Without it: ${NO_ANSWERS.join(', ')}. “None” may be an answer, such as to a question about competitors. In the environment, separate them with commas.`,
    example: '["-", "n/a", "not discussed", "keine Angabe"]',
  },
  'reporting.internal_domains': {
    kind: kinds.domainList,
    without: 'guessed',
    description:
      'Domains of the addresses of your own people. Members are your people wherever they have an address. In the environment, separate them with commas.',
    example: '["example.com", "example.co.jp"]',
  },
  'reporting.partner_domains': {
    kind: kinds.domainList,
    description:
      'Domains of companies that work with you: their people are neither yours nor customers. In the environment, separate them with commas.',
    example: '["agency.example"]',
  },
  'reporting.currency': {
    kind: kinds.currency,
    description: 'The currency of `deals.amount_reporting`.',
    example: '"EUR"',
  },
  'reporting.rates': {
    kind: kinds.rates,
    description:
      'What one unit of another currency is worth in `reporting.currency`, which has to be set too. An amount in a currency without a rate is not converted. In the environment: `USD=0.92,JPY=0.0061`.',
    example: '{ USD = 0.92, JPY = 0.0061 }',
  },
  'crm.sales_pipelines': pipelineList('new business', 'all but those of renewals', '["New business"]'),
  'crm.renewal_pipelines': pipelineList('renewals', 'guessed by name', '["Renewals"]'),
  'crm.deal.object': objectSetting('deal', 'deals'),
  ...roleSettings('deal'),
  'crm.deal.won': stageList('won', '["Sales/Contract active", "Renewed"]'),
  'crm.deal.lost': stageList('lost', '["Sales/Dead"]'),
  'crm.company.object': objectSetting('company', 'companies'),
  ...roleSettings('company'),
  'crm.contact.object': objectSetting('contact', 'contacts'),
  ...roleSettings('contact'),
} as const
