import { CRM_ROLES, type RoleObject } from '../../config/crm-roles.ts'
import { timeOfDayText, WEEKDAYS } from '../../config/kinds.ts'
import type { Settings } from '../../config/loaded-settings.ts'
import { NO_ANSWERS } from '../../config/reporting-settings.ts'
import { camelCase } from '../../config/settings.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import { hasTable } from '../database/existing-tables.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { createMeta, META, readNote } from '../sync/meta.ts'
import type { CalendarRules } from './calendar-days.ts'
import { NO_FIELD, type RoleChoice } from './field-guesses.ts'

/**
 * The settings for reports: what the settings file says, the rows of `report_settings`, and what `parley doctor` shows
 * of them.
 */

/** What the settings say about the tables and views for reports. */
export type ReportConfig = Pick<Settings, 'reporting' | 'crm' | 'crmDeal' | 'crmCompany' | 'crmContact'>

const USUAL_WORKDAYS = [1, 2, 3, 4, 5]

export const calendarRules = ({ reporting }: Pick<ReportConfig, 'reporting'>): CalendarRules => ({
  ...reporting,
  weekStart: WEEKDAYS.indexOf(reporting.weekStart) + 1,
  workdays: reporting.workdays ?? USUAL_WORKDAYS,
  holidays: reporting.holidays ?? [],
})

/** What the settings name for an object of `CRM_ROLES`: the CRM's name of it, and the field of each role. */
export function namedBySettings(config: ReportConfig, role: RoleObject) {
  const named: Readonly<Record<string, unknown>> = {
    deal: config.crmDeal,
    company: config.crmCompany,
    contact: config.crmContact,
  }[role]
  const fieldOf = (name: string) => named[camelCase(name)] as string | undefined
  const fields = Object.keys(CRM_ROLES[role]).map(name => [name, fieldOf(name)])
  return { object: fieldOf('object'), fields: Object.fromEntries(fields) }
}

export interface ReportSetting {
  name: string
  value: string | null
  isGuessed: boolean
  why: string
}

const dayNamed = (weekday: number): string => WEEKDAYS[weekday - 1] ?? ''

interface ReportFindings {
  /** The objects of the CRM and the fields of their roles, by the name of the setting. */
  chosen: readonly (readonly [name: string, choice: RoleChoice])[]
  statusValues: Readonly<Record<string, readonly string[]>>
  /** Guessed domains of the workspace. */
  domains: readonly string[]
}

/** The rows of `report_settings`. */
export function reportSettings(
  config: ReportConfig,
  { chosen, statusValues, domains }: ReportFindings,
): ReportSetting[] {
  const { reporting, crm, crmDeal } = config
  const calendar = calendarRules(config)
  const set = (name: string, value: string | number | object | undefined, without = ''): ReportSetting => ({
    name,
    value: value === undefined ? null : typeof value === 'object' ? JSON.stringify(value) : String(value),
    isGuessed: false,
    why: value === undefined ? without : 'The settings, or their default.',
  })
  return [
    set('reporting.time_zone', calendar.timeZone),
    set('reporting.week_start', dayNamed(calendar.weekStart)),
    set('reporting.fiscal_year_start', calendar.fiscalYearStart),
    set('reporting.fiscal_year_named_by', calendar.fiscalYearNamedBy),
    set('reporting.workdays', calendar.workdays.map(dayNamed)),
    set('reporting.holidays', calendar.holidays),
    set('reporting.work_from', timeOfDayText(calendar.workFrom)),
    set('reporting.work_to', timeOfDayText(calendar.workTo)),
    set('reporting.reply_limit_days', reporting.replyLimitDays),
    set('reporting.no_answers', reporting.noAnswers ?? NO_ANSWERS),
    reporting.internalDomains === undefined
      ? {
          name: 'reporting.internal_domains',
          value: domains.length === 0 ? null : JSON.stringify(domains),
          isGuessed: true,
          why: 'The domains of at least two members, or of half of them. Where many companies have addresses does not count.',
        }
      : set('reporting.internal_domains', reporting.internalDomains),
    set('reporting.partner_domains', reporting.partnerDomains ?? []),
    set('reporting.currency', reporting.currency, 'Not set: amounts are not converted.'),
    set('reporting.rates', reporting.rates, 'Not set: amounts are not converted.'),
    set('crm.sales_pipelines', crm.salesPipelines, 'Not set: all pipelines but those of renewals.'),
    set('crm.renewal_pipelines', crm.renewalPipelines, 'Not set: the names of pipelines are asked.'),
    set('crm.deal.won', crmDeal.won, 'Not set: see stage_outcomes.'),
    set('crm.deal.lost', crmDeal.lost, 'Not set: see stage_outcomes.'),
    {
      name: STATUS_VALUES,
      value: Object.keys(statusValues).length === 0 ? null : JSON.stringify(statusValues),
      isGuessed: true,
      why: 'The values of the field of crm.deal.status, by what their words mean.',
    },
    ...chosen.map(([name, { value = null, isGuessed, why }]) => ({ name, value, isGuessed, why })),
  ]
}

/** Not a setting of the file. Its value changes with the deals, so no change of it is recorded. */
const STATUS_VALUES = 'crm.deal.status_values'

/** The resources that settings are guessed from. */
const sourcesOf = (name: string): readonly ResourceName[] =>
  name.startsWith('crm.') ? ['crm_objects', 'crm_records'] : ['members']

/** The resources of `sourcesOf` that have been read completely at least once. */
export const completeSources = (prepare: Prepare): string[] =>
  prepare<string>(
    `SELECT resource FROM sync_resources
     WHERE resource IN ('crm_objects', 'crm_records', 'members') AND first_complete_at IS NOT NULL ORDER BY resource`,
  )
    .pluck()
    .all()

/**
 * Stores the rows of `report_settings`, and notes which values have changed. A guess that replaces a guess made before
 * its resources were complete is no change: each guess of a first load would be one.
 */
export function storeSettings(prepare: Prepare, settings: readonly ReportSetting[], now: string): void {
  const stored = new Map(
    prepare<{ name: string; value: string | null; is_guessed: number }>(
      'SELECT name, value, is_guessed FROM report_settings',
    )
      .all()
      .map(row => [row.name, row]),
  )
  const meta = createMeta(prepare)
  const guessedFrom = readNote<string[]>(meta.get, META.guessedFrom) ?? []
  meta.set(META.guessedFrom, JSON.stringify(completeSources(prepare)))
  const note = prepare(
    `INSERT INTO report_settings_changes (name, changed_at, old_value, new_value, why) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET new_value = excluded.new_value, why = excluded.why`,
  )
  const write = prepare(
    `INSERT INTO report_settings (name, value, is_guessed, why) VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET value = excluded.value, is_guessed = excluded.is_guessed, why = excluded.why`,
  )
  for (const { name, value, isGuessed, why } of settings) {
    const before = stored.get(name)
    const isFirstGuess =
      isGuessed && before?.is_guessed === 1 && !sourcesOf(name).every(source => guessedFrom.includes(source))
    if (before && before.value !== value && !isFirstGuess && name !== STATUS_VALUES)
      note.run(name, now, before.value, value, why)
    write.run(name, value, isGuessed ? 1 : 0, why)
    stored.delete(name)
  }
  const remove = prepare('DELETE FROM report_settings WHERE name = ?')
  for (const name of stored.keys()) remove.run(name)
}

/** The values of `report_settings` by name. */
export type StoredSettings = ReadonlyMap<string, string | null>

export function storedSettings(db: Sqlite): StoredSettings | undefined {
  if (!hasTable(db, 'report_settings')) return undefined
  return new Map(
    db.prepare<unknown[], [string, string | null]>('SELECT name, value FROM report_settings').raw().all(),
  )
}

/** The fields that hold the roles of an object, by role. */
export const rolesOf = (settings: StoredSettings, object: RoleObject): Record<string, string | null> => {
  const prefix = `crm.${object}.`
  return Object.fromEntries(
    [...settings].flatMap(([name, value]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [],
    ),
  )
}

/** The names of settings with which the tables for reports were not computed yet. */
export function settingsNotTaken(db: Sqlite, config: ReportConfig): string[] {
  const choice = (wanted: string | undefined): RoleChoice => ({
    value: wanted === NO_FIELD ? undefined : wanted,
    isGuessed: wanted === undefined,
    why: '',
  })
  const chosen = Object.keys(CRM_ROLES).flatMap(role => {
    const { object, fields } = namedBySettings(config, role as RoleObject)
    return Object.entries<string | undefined>({ object, ...fields }).map(
      ([name, wanted]) => [`crm.${role}.${name}`, choice(wanted)] as const,
    )
  })
  const stored = new Map(
    db
      .prepare<unknown[], [string, string | null, number]>(
        'SELECT name, value, is_guessed FROM report_settings',
      )
      .raw()
      .all()
      .map(([name, value, isGuessed]) => [name, { value, isGuessed: isGuessed === 1 }]),
  )
  // A name that fits nothing is stored without a value.
  const isTaken = ({ name, value, isGuessed }: ReportSetting) => {
    const before = stored.get(name)
    if (!before || before.isGuessed !== isGuessed) return before === undefined
    return isGuessed || before.value === value || (before.value === null && CHOSEN.test(name))
  }
  const wanted = reportSettings(config, { chosen, statusValues: {}, domains: [] })
  return wanted.filter(setting => !isTaken(setting)).map(({ name }) => name)
}

const CHOSEN = /^crm\.(?:deal|company|contact)\.(?!won$|lost$)/

interface ChangedSetting {
  name: string
  before: string | null
  after: string | null
  at: string
}

export interface StoredReports {
  /** Settings that changed in the last seven days and differ from before; `at` is the last change. */
  changes: readonly ChangedSetting[]
  /** Names, else ids, of stages with deals for which nothing says whether they mean open, won or lost. */
  unknownStages: readonly string[]
  /** The object of deals; undefined when there is none. */
  deals: string | undefined
  /** Settings of fields of deals that questions need, and that are neither set nor guessed. */
  unknownFields: readonly string[]
}

/** SQL for the names of settings without a value that no setting decides. One of these fields says what is open. */
const UNKNOWN_FIELDS = `SELECT CASE name WHEN 'crm.deal.stage' THEN 'crm.deal.stage or crm.deal.is_closed' ELSE name END
  FROM report_settings WHERE is_guessed AND value IS NULL
    AND (name IN ('crm.deal.amount', 'crm.deal.close_date', 'crm.deal.owner') OR (name = 'crm.deal.stage' AND NOT EXISTS (
      SELECT 1 FROM report_settings WHERE value IS NOT NULL
        AND name IN ('crm.deal.is_closed', 'crm.deal.is_won', 'crm.deal.status'))))
  ORDER BY name`

/** A setting that has changed several times has its value before the first change and the one since the last. */
const CHANGED_SETTINGS = `SELECT DISTINCT name, first_value(old_value) OVER changes AS before,
    last_value(new_value) OVER changes AS after, max(changed_at) OVER changes AS at
  FROM report_settings_changes
  WHERE changed_at >= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-7 days')
  WINDOW changes AS (PARTITION BY name ORDER BY changed_at ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)`

/** Undefined in a warehouse of an older version. */
export function storedReports(db: Sqlite): StoredReports | undefined {
  const settings = storedSettings(db)
  if (!settings) return undefined
  const deals = settings.get('crm.deal.object') ?? undefined
  return {
    deals,
    unknownFields: deals === undefined ? [] : db.prepare<unknown[], string>(UNKNOWN_FIELDS).pluck().all(),
    changes: db
      .prepare<unknown[], ChangedSetting>(
        `SELECT * FROM (${CHANGED_SETTINGS}) WHERE before IS NOT after ORDER BY at, name`,
      )
      .all(),
    unknownStages: hasTable(db, 'stage_outcomes')
      ? db
          .prepare<unknown[], string>(
            `SELECT coalesce(stage, stage_id) FROM stage_outcomes WHERE outcome IN ('unknown', 'closed')
             AND stage_id IN (SELECT stage_id FROM deals) ORDER BY 1`,
          )
          .pluck()
          .all()
      : [],
  }
}

/** Settings about reports that fit nothing in the CRM, as sentences. */
export function reportProblems(db: Sqlite): readonly string[] {
  const stored: unknown = JSON.parse(createMeta(sql => db.prepare(sql)).get(META.reportProblems) ?? '[]')
  return Array.isArray(stored) ? stored.map(String) : []
}
