import { HOUR_MS, isoInstant } from '../../base/clock.ts'
import { CRM_ROLES, type CrmRoles, type RoleObject } from '../../config/crm-roles.ts'
import { createCrmFieldReader } from '../crm/sql.ts'
import { quote } from '../database/sql.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { createMeta, META } from '../sync/meta.ts'
import { dealViews } from '../views/deal-views.ts'
import { replaceViews } from '../views/replace.ts'
import { type CalendarDay, type CalendarRules, calendarDays } from './calendar-days.ts'
import { createColumnValues } from './column-values.ts'
import { createDealVersions } from './deal-versions.ts'
import { ensureReportTables, reportTablesIn } from './derived-tables.ts'
import { chooseFields, type FieldFacts, plain, type RoleChoice } from './field-guesses.ts'
import { createFollow, type FollowDeps, isFollowing, type Rules } from './follow.ts'
import { readDealFacts, readPipelines, readStageRecords, stageFacts } from './pipeline-facts.ts'
import {
  calendarRules,
  completeSources,
  namedBySettings,
  type ReportConfig,
  reportSettings,
  storeSettings,
} from './report-settings.ts'
import { type RecordSource, recordSource } from './roles-in-table.ts'
import { guessDomains } from './sides.ts'
import { outcomesOf, type StageFacts } from './stage-outcomes.ts'
import { reportViews } from './views.ts'
import { followChanges } from './waiting-keys.ts'

/** Dates before the first and after the last of these years are mistakes. */
const YEARS = { first: 1970, last: 2100 }
const YEARS_AHEAD = 2
/** The calendar contains the fiscal year of the first row and the one before. */
const YEARS_BEFORE = 2

interface ReportsDeps extends FollowDeps {
  /**
   * Number of all transactions so far, including those of other modules. While it stays the same, nothing is computed
   * again.
   */
  commits(): number
}

export type Reports = ReturnType<typeof createReports>

/**
 * Keeps `report_settings` and the derived tables for reports consistent with the CRM's metadata, stages and settings.
 */
export function createReports({ db, prepare, clock, changes, transaction, commits }: ReportsDeps) {
  const meta = createMeta(prepare)
  const follow = createFollow({ db, prepare, clock, changes, transaction })
  if (reportTablesIn(db).conversations && isFollowing(prepare)) followChanges(db)
  const updateDealVersions = createDealVersions({ db, prepare, transaction })
  const updateColumnValues = createColumnValues({ prepare, clock, transaction })
  let done: string | undefined
  let days: { of: string; rows: readonly CalendarDay[] } = { of: '', rows: [] }

  const calendar = (rules: CalendarRules, years: Years) => {
    const of = JSON.stringify([rules, years])
    if (days.of !== of) days = { of, rows: calendarDays(rules, years) }
    return days.rows
  }

  const write = (config: ReportConfig, span: TimeRange): readonly string[] => {
    ensureReportTables(db)
    if (!reportTablesIn(db).deals) return []
    const { settings, problems, dealSpan, isPercentWithout } = findings(db, prepare, config)
    const years = yearsOf([span, dealSpan], new Date(clock.now()).getUTCFullYear())
    storeSettings(prepare, settings, isoInstant(clock.now()))
    replaceRows(prepare, 'calendar', calendar(calendarRules(config), years))
    meta.set(META.reportProblems, JSON.stringify(problems))
    meta.set(META.percentWithoutPipeline, JSON.stringify(isPercentWithout))
    replaceViews(db, [...dealViews(db), ...reportViews(db)])
    return problems
  }

  const updateSettings = async (config: ReportConfig): Promise<readonly string[] | undefined> => {
    const span = spanOfRows(prepare)
    const year = new Date(clock.now()).getUTCFullYear()
    const inputs = JSON.stringify([
      config,
      span.map(text => text?.slice(0, 4)),
      year,
      lastChangeOfRules(prepare),
      completeSources(prepare),
    ])
    // Without stored rules, everything is computed again.
    const isAsked = reportTablesIn(db).conversations && !isFollowing(prepare)
    if (inputs === done && !isAsked) return undefined
    const problems = await transaction(() => write(config, span))
    if (reportTablesIn(db).deals) await updateDealVersions()
    done = inputs
    return problems
  }

  const dataVersion = prepare<number>('PRAGMA data_version').pluck()
  /** `given` of the last update that has not failed. */
  let before: readonly unknown[] | undefined
  let countAgainAt = Number.POSITIVE_INFINITY

  return {
    /**
     * Computes the tables again if anything has changed since the last call, or `config` is another object.
     * @returns settings that fit nothing in the CRM, each as a sentence; undefined when nothing was computed
     */
    async update(config: ReportConfig): Promise<readonly string[] | undefined> {
      const year = new Date(clock.now()).getUTCFullYear()
      // A planned meeting counts once its day has begun, though nothing else has changed.
      const hour = Math.floor(clock.now() / HOUR_MS)
      const given = [config, year, hour, onlyRow(dataVersion), commits()]
      if (given.every((one, at) => one === before?.[at]) && clock.elapsed() < countAgainAt) return undefined
      const problems = await updateSettings(config)
      const { deals, conversations } = reportTablesIn(db)
      if (deals) countAgainAt = await updateColumnValues()
      if (conversations)
        await follow({ config, internalDomains: storedDomains(prepare, config), days: days.rows })
      before = given
      return problems
    },
  }
}

interface Years {
  first: number
  last: number
}

const lastChangeOfRules = (prepare: Prepare): number =>
  onlyRow(
    prepare<number>(
      `SELECT coalesce(max(change), 0) FROM sync_changed_parts WHERE table_name IN ('crm_objects', 'crm_fields', 'crm_records', 'members')`,
    ).pluck(),
  )

/** The first and the last time of events, as texts that begin with the year. */
type TimeRange = readonly [first: string | null, last: string | null]

/** SQL condition that leaves out mistaken dates, since a single one would decide the range. */
const IS_POSSIBLE = `BETWEEN '${YEARS.first}' AND '${YEARS.last + 1}'`

function spanOfRows(prepare: Prepare): TimeRange {
  const ends = [
    'SELECT min(occurred_at) AS day FROM activities WHERE occurred_at',
    'SELECT min(received_at) FROM messages WHERE received_at',
    'SELECT min(start_time) FROM meetings WHERE start_time',
    'SELECT max(start_time) FROM meetings WHERE start_time',
  ].map(select => `${select} ${IS_POSSIBLE}`)
  const found = prepare<TimeRange>(`SELECT min(day), max(day) FROM (${ends.join(' UNION ALL ')})`)
  return onlyRow(found.raw())
}

/** From the first to the last day of deals: by their fields, and by when the API says that they were created. */
function spanOfDeals(
  prepare: Prepare,
  source: RecordSource | undefined,
  fields: Readonly<Record<string, string | undefined>>,
): TimeRange {
  if (!source) return [null, null]
  const days = ['close_date', 'created', 'closed_at'].flatMap(role => {
    const field = fields[role]
    if (field === undefined) return []
    const value = source.column(field)
    // The local day of an instant is not known before the calendar has it. It may be in the next year.
    return source.formOf(field) === 'timestamp' ? [`date(${value})`, `date(${value}, '+1 day')`] : [value]
  })
  const values = ['t.created_at', ...days].map(day => `SELECT ${day} AS day FROM ${source.live}`)
  const found = prepare<TimeRange>(
    `SELECT min(x.day), max(x.day) FROM (${values.join(' UNION ALL ')}) x WHERE x.day ${IS_POSSIBLE}`,
  )
  return onlyRow(found.raw())
}

function yearsOf(spans: readonly TimeRange[], now: number): Years {
  const years = spans.flat().flatMap(text => (text === null ? [] : Number(text.slice(0, 4))))
  return {
    first: Math.max(YEARS.first, Math.min(now, ...years) - YEARS_BEFORE),
    last: Math.min(YEARS.last, Math.max(now + YEARS_AHEAD, ...years)),
  }
}

/** Writes the pipelines and the stages, and returns what is known of the settings. */
function findings(db: Sqlite, prepare: Prepare, config: ReportConfig) {
  const guessed = prepare<{ name: string; value: string; why: string }>(
    'SELECT name, value, why FROM report_settings WHERE is_guessed AND value IS NOT NULL',
  )
  const stored = new Map(guessed.all().map(({ name, ...guess }) => [name, guess]))
  const objects = objectsOf(prepare, config)
  const target = (prefix: RegExp) => (object: string) => prefix.test(plain(object))
  const targets = {
    company: (object: string) => object === objects.company.value,
    stage: target(/^(deal|sales|opportunity|pipeline)?stage$|^ステージ$|^フェーズ$/),
    pipeline: target(/^(deal|sales|opportunity)?pipeline$|^パイプライン$/),
  }
  const chosenFields = Object.entries(CRM_ROLES).map(([name, roles]) => {
    const role = name as RoleObject
    const object = objects[role].value
    const set = namedBySettings(config, role).fields
    const before = Object.fromEntries(
      Object.keys(roles).map(each => [each, stored.get(`crm.${role}.${each}`)]),
    )
    const decided = new Map(
      Object.keys(roles).flatMap(each => {
        const field = set[each] ?? before[each]?.value
        return field === undefined ? [] : [[each, field] as const]
      }),
    )
    const fields = object === undefined ? [] : factsOf(db, prepare, object, { roles, decided })
    return [role, chooseFields(roles as CrmRoles, { object, fields, set, before, targets })] as const
  })
  const fields = Object.fromEntries(chosenFields) as Record<RoleObject, Record<string, RoleChoice>>
  const dealFields = Object.fromEntries(Object.entries(fields.deal).map(([role, { value }]) => [role, value]))
  const source = recordSource(db, objects.deal.value)
  const facts = readDealFacts(prepare, source, dealFields)
  const stageRecords = readStageRecords(prepare, { source, field: dealFields['stage'], facts })
  const pipelines = readPipelines(prepare, {
    source,
    field: dealFields['pipeline'],
    facts,
    stages: stageRecords,
    settings: config.crm,
  })
  const stages = stageFacts(stageRecords, facts, pipelines)
  const { won = [], lost = [] } = config.crmDeal
  const { outcomes, unmatched, namedTwice } = outcomesOf(stages, { won, lost })
  const kept = new Map(prepare<[string, string]>('SELECT stage_id, outcome FROM stage_outcomes').raw().all())
  replaceRows(prepare, 'pipelines', pipelines.rows)
  replaceRows(
    prepare,
    'stage_outcomes',
    stages.map(({ id, name, pipelineId, position, chance, isDeleted }) => {
      const { outcome, isGuessed, why } = outcomes.get(id) ?? { outcome: 'unknown', isGuessed: true, why: '' }
      const earlier = isDeleted && isGuessed ? kept.get(id) : undefined
      const isKept = earlier !== undefined && earlier !== 'unknown' && earlier !== outcome
      return {
        stage_id: id,
        stage: name,
        pipeline_id: pipelineId,
        position,
        probability: chance,
        outcome: isKept ? earlier : outcome,
        is_guessed: isGuessed ? 1 : 0,
        why: isKept ? 'It was deleted, and keeps what it meant before.' : why,
      }
    }),
  )
  const hasMetadata = Object.values(objects).some(({ value }) => value !== undefined)
  const chosen = [
    ...Object.entries(objects).map(([role, choice]) => [`crm.${role}.object`, choice] as const),
    ...Object.entries(fields).flatMap(([role, choices]) =>
      Object.entries(choices).map(([name, choice]) => [`crm.${role}.${name}`, choice] as const),
    ),
  ]
  const problems = [
    ...chosen.flatMap(([name, { isMissing, why }]) => (isMissing ? `${name}: ${why}` : [])),
    ...(stages.length > 0 ? unmatched.map(entry => unmatchedStage(entry, stages)) : []),
    ...namedTwice.map(
      stage =>
        `crm.deal.won and crm.deal.lost both name ${stageName(stage)}: expected one of them to name it.`,
    ),
    ...pipelines.problems,
  ]
  return {
    dealSpan: spanOfDeals(prepare, source, dealFields),
    isPercentWithout: pipelines.isPercentWithout,
    settings: reportSettings(config, {
      chosen,
      statusValues: facts.statusValues,
      domains: guessedDomains(prepare),
    }),
    problems: hasMetadata ? problems : [],
  }
}

const INTERNAL_DOMAINS = 'reporting.internal_domains'

/** Domains that were guessed before stay. */
function guessedDomains(prepare: Prepare): string[] {
  const addresses = prepare<string>("SELECT lower(trim(email)) FROM members WHERE trim(email) <> ''").pluck()
  return [...new Set([...storedGuess(prepare), ...guessDomains(addresses.all())])].sort()
}

function storedGuess(prepare: Prepare): readonly string[] {
  const stored = prepare<string | null>(
    'SELECT value FROM report_settings WHERE is_guessed AND name = ?',
  ).pluck()
  return JSON.parse(stored.get(INTERNAL_DOMAINS) ?? '[]')
}

const storedDomains = (prepare: Prepare, { reporting }: ReportConfig): Rules['internalDomains'] => ({
  set: reporting.internalDomains ?? [],
  guessed: reporting.internalDomains === undefined ? storedGuess(prepare) : [],
})

function unmatchedStage(entry: string, stages: readonly StageFacts[]): string {
  return `crm.deal.won or crm.deal.lost names ${entry}, which is no stage. There are: ${stages.map(stageName).join(', ')}.`
}

const stageName = ({ id, name, pipeline }: StageFacts): string =>
  name === null ? id : pipeline === null ? name : `${pipeline}/${name}`

function objectsOf(prepare: Prepare, config: ReportConfig): Record<RoleObject, RoleChoice> {
  const known = prepare<KnownObject>(
    'SELECT name, is_custom FROM crm_objects WHERE _deleted_at IS NULL ORDER BY name',
  ).all()
  const chosen = Object.keys(CRM_ROLES).map(role => [
    role,
    chooseObject(role, namedBySettings(config, role as RoleObject).object, known),
  ])
  return Object.fromEntries(chosen)
}

interface KnownObject {
  name: string
  is_custom: number | null
}

function chooseObject(role: string, set: string | undefined, known: readonly KnownObject[]): RoleChoice {
  if (set !== undefined) {
    const names = known.map(({ name }) => name)
    if (names.includes(set)) return { value: set, isGuessed: false, why: 'The settings name this object.' }
    const why = `The settings name ${set}, which is no object of the CRM. There are: ${names.join(', ') || 'none'}.`
    return { value: undefined, isGuessed: false, why, isMissing: true }
  }
  const standard = known.find(({ name }) => name === role)
  if (!standard) return { value: undefined, isGuessed: true, why: `The CRM has no object ${role}.` }
  if (standard.is_custom === 1)
    return {
      value: undefined,
      isGuessed: true,
      why: `The workspace has made the object ${role} itself: name it to use it.`,
    }
  return { value: role, isGuessed: true, why: `The CRM has a standard object ${role}.` }
}

/**
 * The fields of an object. Records with a value are counted only for fields that may hold a role that has no field yet:
 * for a million contacts the count takes a second, and it runs after each change of the CRM.
 * @param decided by role: the field that the settings or an earlier guess give it
 */
function factsOf(
  db: Sqlite,
  prepare: Prepare,
  object: string,
  { roles, decided }: { roles: CrmRoles; decided: ReadonlyMap<string, string> },
): FieldFacts[] {
  const fields = createCrmFieldReader(prepare)(object)
  const source = recordSource(db, object)
  const active = new Set(fields.flatMap(({ name, isActive }) => (isActive ? name : [])))
  const open = Object.entries(roles).flatMap(([name, role]) =>
    active.has(decided.get(name) ?? '') ? [] : role,
  )
  const names = new Set(open.flatMap(({ names: each }) => each.map(plain)))
  const pointSomewhere = open.some(({ to }) => to !== undefined)
  const taken = new Set(decided.values())
  const mayHold = fields.filter(
    ({ name, label, isRelation }) =>
      !taken.has(name) &&
      ((isRelation && pointSomewhere) ||
        names.has(plain(name)) ||
        (label !== null && names.has(plain(label)))),
  )
  const values = mayHold.map(({ name }) => source?.column(name) ?? 'NULL')
  const counts =
    source && values.length > 0
      ? (db
          .prepare<unknown[], number[]>(
            `SELECT ${values.map(value => `count(${value})`).join(', ')} FROM ${source.live}`,
          )
          .raw()
          .get() ?? [])
      : []
  const filled = new Map(mayHold.map(({ name }, index) => [name, counts[index] ?? 0]))
  return fields.map(field => ({ ...field, filled: filled.get(field.name) ?? 0 }))
}

/** Replaces the rows of a derived table if they differ. */
function replaceRows<Row extends object>(prepare: Prepare, table: string, rows: readonly Row[]): void {
  const columns = prepare<keyof Row & string>('SELECT name FROM pragma_table_info(?)').pluck().all(table)
  const order = columns.map(quote).join(', ')
  const before = prepare<unknown[]>(`SELECT ${order} FROM ${quote(table)} ORDER BY 1`)
    .raw()
    .all()
  const sorted = rows
    .map(row => columns.map(column => row[column] ?? null))
    .toSorted(([one], [other]) => (String(one) < String(other) ? -1 : 1))
  const isSame = (row: readonly unknown[], at: number) =>
    row.every((cell, index) => cell === before[at]?.[index])
  if (sorted.length === before.length && sorted.every(isSame)) return
  prepare(`DELETE FROM ${quote(table)}`).run()
  const insert = prepare(
    `INSERT INTO ${quote(table)} (${order}) VALUES (${columns.map(() => '?').join(', ')})`,
  )
  for (const row of sorted) insert.run(...row)
}
