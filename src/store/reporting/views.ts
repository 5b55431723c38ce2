import type { RoleObject } from '../../config/crm-roles.ts'
import { HAPPENED } from '../../dictionary/report-tables.ts'
import { NAME_FIELDS } from '../crm/sql.ts'
import { literal, quote } from '../database/sql.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { META, readMeta } from '../sync/meta.ts'
import type { View } from '../views/replace.ts'
import { CONVERSATION_VIEW_SQL, IS_WITHOUT_MEMBERS } from './conversation-views.ts'
import { dealColumns, withPipelines } from './deal-columns.ts'
import type { Deriving } from './derivation.ts'
import { absentReportObjects } from './derived-tables.ts'
import { PERIOD_COVERAGE, PERIOD_DAYS, PERIODS, TODAY } from './periods.ts'
import { rolesOf, type StoredSettings, storedSettings } from './report-settings.ts'
import { localDay, type RecordSource, recordSource, roleValues } from './roles-in-table.ts'

/**
 * The views for reports, made of `report_settings`. They are replaced when the settings or the columns of typed tables
 * change.
 */
export function reportViews(db: Sqlite): readonly View[] {
  const settings = storedSettings(db)
  if (!settings) return []
  const absent = absentReportObjects(db)
  const views = {
    ...CONVERSATION_VIEW_SQL,
    periods: PERIODS,
    period_days: PERIOD_DAYS,
    period_coverage: PERIOD_COVERAGE,
    deals: dealsView(db, settings),
    companies: companiesView(db, settings),
    contacts: contactsView(db, settings),
    deal_changes: DEAL_CHANGES,
    deal_facts: DEAL_FACTS,
    company_facts: COMPANY_FACTS,
    contact_facts: factsOf('contacts', 'contact'),
  }
  return Object.entries(views).flatMap(([name, sql]) =>
    absent.has(name) ? [] : [{ name, sql: `CREATE VIEW ${quote(name)} AS ${sql.trim()}` }],
  )
}

/**
 * The records of an object with its roles as columns, as a subquery. The subquery has no rows when no object holds such
 * records.
 */
function records(
  db: Sqlite,
  settings: StoredSettings,
  role: RoleObject,
): { sql: string; source: RecordSource | undefined } {
  const chosen = rolesOf(settings, role)
  const source = recordSource(db, chosen['object'])
  const values = Object.entries(roleValues(role, source, chosen))
  const columns = values.map(([name, value]) => `${value} AS ${quote(name)}`)
  const live = source?.live ?? 'crm_records t WHERE 0'
  return {
    sql: `(SELECT t.id, CAST(${literal(chosen['object'] ?? '')} AS TEXT) AS object, t.created_at AS stored_created_at, ${columns.join(', ')} FROM ${live})`,
    source,
  }
}

/** SQL for the name of a record that an id points at; NULL when it is not known. */
function nameOf(
  db: Sqlite,
  object: string | null | undefined,
  nameField: string | null | undefined,
  id: string,
): string {
  const source = recordSource(db, object)
  const fields = [...(nameField ? [nameField] : []), ...NAME_FIELDS]
  const values = fields.flatMap(field => source?.column(field) ?? [])
  if (!source || values.length === 0) return 'CAST(NULL AS TEXT)'
  const name = values.map(value => `nullif(trim(CAST(${value} AS TEXT)), '')`)
  const first = name.length === 1 ? name[0] : `coalesce(${name.join(', ')})`
  return `(SELECT ${first} FROM ${source.from} AND t.id = ${id})`
}

/** The company of the record `x`, and its name. A field that is no relation holds the name itself. */
function companyColumns(
  db: Sqlite,
  settings: StoredSettings,
  source: RecordSource | undefined,
  role: 'deal' | 'contact',
): string {
  if (source?.formOf(settings.get(`crm.${role}.company`) ?? '') !== 'relation')
    return 'CAST(NULL AS TEXT) AS company_id, CAST(x.company AS TEXT) AS company'
  const [object, name] = [settings.get('crm.company.object'), settings.get('crm.company.name')]
  return `CAST(x.company AS TEXT) AS company_id, CAST(${nameOf(db, object, name, 'x.company')} AS TEXT) AS company`
}

/** The API lists no former members. So until members were read, an id that no member has says nothing. */
const OWNER_COLUMNS = `CAST(x.owner AS TEXT) AS owner_id,
  CAST(CASE WHEN x.owner IS NULL THEN NULL
    WHEN m.name <> '' THEN m.name
    WHEN m.id IS NOT NULL AND m._deleted_at IS NULL THEN coalesce(nullif(m.email, ''), 'Member ' || substr(x.owner, -4))
    ELSE iif(${IS_WITHOUT_MEMBERS}, 'Member ', 'Former member ') || substr(x.owner, -4) END AS TEXT) AS owner,
  CAST(CASE WHEN x.owner IS NULL THEN 'none' WHEN ${IS_WITHOUT_MEMBERS} THEN 'unknown'
    WHEN m.id IS NULL OR m._deleted_at IS NOT NULL THEN 'left'
    WHEN m.name <> '' THEN 'member' ELSE 'unnamed' END AS TEXT) AS owner_state`

const OWNER_JOIN = 'LEFT JOIN members m ON m.id = x.owner'

/** SQL for the factor that converts an amount to the reporting currency. Rates without that currency mean nothing. */
function reportingFactor(settings: StoredSettings): string {
  if (!settings.get('crm.deal.currency')) return '1'
  const currency = settings.get('reporting.currency')
  if (!currency) return 'NULL'
  const stored = settings.get('reporting.rates')
  const rates: Record<string, number> = { ...(stored ? JSON.parse(stored) : {}), [currency]: 1 }
  const cases = Object.entries(rates).map(([code, rate]) => `WHEN ${literal(code)} THEN ${rate}`)
  return `CASE upper(x.currency) ${cases.join(' ')} END`
}

/**
 * SQL for the local day on which the last version of the deal `x` ended that was not closed. A version without a stage
 * says nothing: the field of the stage may have had another name then.
 */
const SEEN_CLOSED = `(SELECT v.to_day FROM deal_versions v
      WHERE v.deal_id = x.id AND (v.outcome = 'open' OR (v.outcome = 'unknown' AND v.stage_id IS NOT NULL))
      ORDER BY v.from_at DESC LIMIT 1)`

/** The outcomes with a column to count and one to add up amounts. */
const COUNTED_OUTCOMES = ['open', 'won', 'lost'] as const

function dealsView(db: Sqlite, settings: StoredSettings): string {
  const { sql, source } = records(db, settings, 'deal')
  const deal = dealColumns(settings)
  const isPercent = `coalesce(p.is_percent, ${readMeta(db, META.percentWithoutPipeline) === 'true' ? 1 : 0})`
  return `
SELECT d.deal_id, d.deal, d.company_id, d.company, d.pipeline_id, d.pipeline, d.pipeline_kind, d.stage_id, d.stage,
  d.stage_position, d.owner_id, d.owner, d.owner_state, d.amount, d.currency, d.amount_reporting, d.created_day,
  d.close_date, CAST(CASE WHEN d.outcome IN ('won', 'lost', 'closed')
    THEN coalesce(d.closed_field_day, d.observed_day, d.close_date) END AS TEXT) AS closed_day,
  CAST(CASE WHEN d.outcome NOT IN ('won', 'lost', 'closed') THEN NULL WHEN d.closed_field_day IS NOT NULL THEN 'field'
    WHEN d.observed_day IS NOT NULL THEN 'observed' WHEN d.close_date IS NOT NULL THEN 'close_date' END AS TEXT)
    AS closed_from,
  CAST(CASE WHEN d.outcome IN ('won', 'lost', 'closed') AND d.close_date >= d.created_day
    THEN julianday(d.close_date) - julianday(d.created_day) END AS INTEGER) AS days_to_close,
  d.probability, d.forecast_category, d.deal_type, d.lost_reason, d.next_step, d.outcome,
  ${COUNTED_OUTCOMES.map(outcome => `CAST(d.outcome = '${outcome}' AS INTEGER) AS ${outcome}_deals`).join(', ')},
  ${COUNTED_OUTCOMES.map(outcome => `CAST(CASE WHEN d.outcome = '${outcome}' THEN d.amount_reporting END AS REAL) AS ${outcome}_amount`).join(', ')},
  d.object
FROM (
  SELECT x.id AS deal_id, x.name AS deal, x.object,
    ${companyColumns(db, settings, source, 'deal')},
    ${deal.pipeline_id} AS pipeline_id, p.pipeline, CAST(coalesce(p.kind, 'sales') AS TEXT) AS pipeline_kind,
    ${deal.stage_id} AS stage_id, ${deal.stage} AS stage, s.position AS stage_position,
    ${OWNER_COLUMNS},
    ${deal.amount} AS amount, ${deal.currency} AS currency,
    CAST(x.amount * ${reportingFactor(settings)} AS REAL) AS amount_reporting,
    CAST(coalesce(x.created, ${localDay('x.stored_created_at')}) AS TEXT) AS created_day, ${deal.close_date} AS close_date,
    x.closed_at AS closed_field_day, ${SEEN_CLOSED} AS observed_day,
    CAST(CASE WHEN x.probability < 0 THEN NULL
      WHEN ${isPercent} = 1 AND x.probability <= 100 THEN x.probability / 100
      WHEN ${isPercent} = 0 AND x.probability <= 1 THEN x.probability
      WHEN x.probability IS NULL THEN s.probability END AS REAL) AS probability,
    ${deal.forecast_category} AS forecast_category, x.type AS deal_type, x.lost_reason, x.next_step,
    ${deal.outcome} AS outcome
  FROM ${withPipelines(sql)} x
  LEFT JOIN pipelines p ON p.pipeline_id = x.pipeline_id
  LEFT JOIN stage_outcomes s ON s.stage_id = x.stage
  ${OWNER_JOIN}
) d`
}

/** SQL for the domain in a text that may be the address of a page. */
function domainIn(value: string): string {
  const afterScheme = `(SELECT substr(a, coalesce(nullif(instr(a, '://'), 0) + 3, 1)) || '/' AS a FROM (SELECT lower(trim(${value})) AS a))`
  const host = `(SELECT substr(a, 1, instr(replace(replace(replace(a, '?', '/'), '#', '/'), ':', '/'), '/') - 1) AS a FROM ${afterScheme})`
  return `(SELECT CAST(nullif(CASE WHEN a LIKE 'www.%' THEN substr(a, 5) ELSE a END, '') AS TEXT) FROM ${host})`
}

/** SQL for live records with what happened with each of them. */
const factsOf = (view: string, record: string, more = '', joins = ''): string => `
SELECT d.*, ${HAPPENED.numbers.map(name => `CAST(coalesce(a.${name}, 0) AS INTEGER) AS ${name}`).join(', ')},
  ${HAPPENED.days.map(name => `a.${name}`).join(', ')}, CAST(max(0, t.day_number - l.day_number) AS INTEGER) AS days_silent${more}
FROM ${view} d LEFT JOIN record_activity a ON a.object = d.object AND a.record_id = d.${record}_id
LEFT JOIN calendar l ON l.day = a.last_day LEFT JOIN calendar t ON t.day = ${TODAY}${joins}`

const DEAL_FACTS = factsOf(
  'deals',
  'deal',
  `,
  CAST((SELECT count(*) FROM deal_changes v WHERE v.deal_id = d.deal_id AND v.days_later > 0) AS INTEGER) AS slips,
  CAST(CASE WHEN d.outcome = 'open' AND d.close_date < t.day THEN 1 ELSE 0 END AS INTEGER) AS is_past_close_date,
  CAST(CASE WHEN d.outcome IN ('won', 'lost', 'closed') AND d.close_date >= a.first_meeting_day
    THEN julianday(d.close_date) - julianday(a.first_meeting_day) END AS INTEGER) AS days_from_meeting`,
)

const DEAL_CHANGES = `
SELECT v.deal_id, v.from_at AS seen_at, v.from_day AS day,
  CAST(julianday(v.close_date) - julianday(b.close_date) AS INTEGER) AS days_later,
  ${['stage_id', 'stage', 'amount', 'currency', 'close_date', 'outcome'].map(name => `b.${name} AS ${name}_before, v.${name}`).join(', ')}
FROM deal_versions v JOIN deal_versions b ON b.deal_id = v.deal_id AND b.to_at = v.from_at`

const COMPANY_FACTS = factsOf(
  'companies',
  'company',
  `,
  CAST(max(0, t.day_number - w.day_number) AS INTEGER) AS days_since_two_way,
  CAST(coalesce(o.open, 0) AS INTEGER) AS open_deals, CAST(o.amount AS REAL) AS open_amount,
  CAST(coalesce(o.unknown, 0) AS INTEGER) AS unknown_deals,
  CAST((SELECT count(*) FROM _record_conversations p JOIN conversations m ON m._id = p.conversation
    WHERE p.record = a._id AND m.kind = 'meeting' AND m.is_readable = 0
      AND (a.last_two_way_day IS NULL OR m.day > a.last_two_way_day)) AS INTEGER)
    AS withheld_meetings,
  CAST(d.company_id IN (SELECT s.company_id FROM parties s WHERE s.side = 'partner' AND s.company_id IS NOT NULL) AS INTEGER)
    AS is_partner`,
  `
LEFT JOIN calendar w ON w.day = a.last_two_way_day
LEFT JOIN (SELECT company_id, sum(open_deals) AS open, count(iif(outcome = 'unknown', 1, NULL)) AS unknown,
  sum(open_amount) AS amount FROM deals GROUP BY company_id) o ON o.company_id = d.company_id`,
)

function companiesView(db: Sqlite, settings: StoredSettings): string {
  const { sql } = records(db, settings, 'company')
  return `
SELECT x.id AS company_id, x.name AS company, ${domainIn('x.domain')} AS domain,
  ${OWNER_COLUMNS}, x.object
FROM ${sql} x
${OWNER_JOIN}`
}

/**
 * SQL for the name of a person by the values of its roles. In Chinese, Japanese and Korean letters the last name comes
 * first.
 */
function personName({ name, first_name = 'NULL', last_name = 'NULL' }: Readonly<Record<string, string>>) {
  const [first, last] = [`coalesce(${first_name}, '')`, `coalesce(${last_name}, '')`]
  const parts = `iif(unicode(${last_name}) >= 0x2E80, ${last} || ' ' || ${first}, ${first} || ' ' || ${last})`
  return `CAST(coalesce(${name}, nullif(trim(${parts}), '')) AS TEXT)`
}

/**
 * SQL for the addresses of contacts and the domains of companies whose ids are in the JSON array `:keys`. Unlike the
 * views, this SQL reads them by key.
 */
export function keyedRecords(db: Sqlite): Deriving['crm'] {
  const settings = storedSettings(db) ?? new Map()
  const keyed = (
    role: 'contact' | 'company',
    columns: (values: Readonly<Record<string, string>>) => string,
  ) => {
    const chosen = rolesOf(settings, role)
    const source = recordSource(db, chosen['object'])
    if (!source) return undefined
    return `SELECT t.id AS ${role}_id, ${columns(roleValues(role, source, chosen))}
      FROM ${source.live} AND t.id IN (SELECT value FROM json_each(:keys))`
  }
  const contactObject = settings.get('crm.contact.object')
  const isRelation =
    recordSource(db, contactObject)?.formOf(settings.get('crm.contact.company') ?? '') === 'relation'
  return {
    contactObject: contactObject ?? 'contact',
    contacts: keyed(
      'contact',
      ({ email, company, ...names }) =>
        `lower(${email}) AS address, ${personName(names)} AS name, ${isRelation ? company : 'NULL'} AS company_id`,
    ),
    companies: keyed('company', ({ domain = 'NULL' }) => `${domainIn(domain)} AS domain`),
  }
}

function contactsView(db: Sqlite, settings: StoredSettings): string {
  const { sql, source } = records(db, settings, 'contact')
  return `
SELECT x.id AS contact_id, ${personName({ name: 'x.name', first_name: 'x.first_name', last_name: 'x.last_name' })} AS contact, CAST(lower(x.email) AS TEXT) AS email,
  ${companyColumns(db, settings, source, 'contact')},
  ${OWNER_COLUMNS},
  CAST(coalesce(x.opted_out, 1 - x.opted_in) AS INTEGER) AS is_opted_out, x.object
FROM ${sql} x
${OWNER_JOIN}`
}
