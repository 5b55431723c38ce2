import { CRM_ROLES } from '../../config/crm-roles.ts'
import type { Settings } from '../../config/loaded-settings.ts'
import { createCrmFieldReader, NAME_FIELDS } from '../crm/sql.ts'
import { idIn, literal, quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { outcomeOfRoles, type StatusValues } from './deal-columns.ts'
import { listsBy } from './derivation.ts'
import { plain } from './field-guesses.ts'
import { finiteReal, type RecordSource, roleValues } from './roles-in-table.ts'
import { outcomeOfName, type StageFacts } from './stage-outcomes.ts'

/** Reads the pipelines and stages of a CRM, and what the deals in them say. */

export interface DealFacts {
  groups: readonly DealGroup[]
  statusValues: StatusValues
}

/** The deals of one pipeline and stage. */
interface DealGroup {
  pipeline: string | null
  stage: string | null
  deals: number
  open: number
  closed: number
  won: number
  lost: number
  least: number | null
  most: number | null
}

/** A status field with more values than this is not used. */
const MOST_VALUES = 200

const NO_DEALS: DealFacts = { groups: [], statusValues: {} }

export function readDealFacts(
  prepare: Prepare,
  source: RecordSource | undefined,
  fields: Readonly<Record<string, string | undefined>>,
): DealFacts {
  if (!source) return NO_DEALS
  const roles = ['pipeline', 'stage', 'status', 'is_won', 'is_closed', 'probability'] as const
  const values = roleValues('deal', source, fields)
  const found =
    fields['status'] === undefined
      ? []
      : prepare<string | null>(
          `SELECT DISTINCT ${values.status} AS v FROM ${source.live} ORDER BY 1 LIMIT ${MOST_VALUES + 1}`,
        )
          .pluck()
          .all()
  const told = found.length > MOST_VALUES ? [] : found.filter(value => value !== null)
  const meanings = listsBy(told, outcomeOfName)
  meanings.delete('unknown')
  const statusValues = Object.fromEntries(meanings)
  const dealsThat = (are: string) => `count(*) FILTER (WHERE x.outcome ${are})`
  const groups = prepare<DealGroup>(
    `SELECT x.pipeline, x.stage, count(*) AS deals, ${dealsThat("= 'open'")} AS open,
       ${dealsThat("IN ('won', 'lost', 'closed')")} AS closed, ${dealsThat("= 'won'")} AS won,
       ${dealsThat("= 'lost'")} AS lost, min(x.probability) AS least, max(x.probability) AS most
     FROM (SELECT x.pipeline, x.stage, iif(x.probability BETWEEN 0 AND 100, x.probability, NULL) AS probability,
         ${outcomeOfRoles(statusValues, "'closed'")} AS outcome
       FROM (SELECT ${roles.map(role => `${values[role]} AS ${quote(role)}`).join(', ')}
         FROM ${source.live}) x) x
     GROUP BY 1, 2`,
  ).all()
  return { groups, statusValues }
}

export interface PipelineRow {
  pipeline_id: string
  pipeline: string | null
  kind: 'sales' | 'renewal' | 'other'
  position: number | null
  is_percent: 0 | 1
}

export interface Pipelines {
  rows: readonly PipelineRow[]
  /** Whether the probabilities of deals without a pipeline are per cent. */
  isPercentWithout: boolean
}

interface NamedRecord {
  id: string
  name: string | null
  position: number | null
  probability: number | null
  /** For a stage: the id of its pipeline. */
  parent: string | null
  isDeleted: number
}

const UNDESCRIBED = { position: null, probability: null, parent: null }

const POSITIONS = [
  'position',
  'order',
  'display order',
  'sort order',
  'order nr',
  'index',
  '並び順',
  '表示順',
].map(plain)
const PROBABILITIES = CRM_ROLES.deal.probability.names.map(plain)
const PIPELINES = ['pipeline', 'pipeline id', 'パイプライン'].map(plain)

/**
 * The records that a field of deals points at, deleted ones too. For a field that is no relation, its values are the
 * names.
 */
function recordsOf(
  prepare: Prepare,
  { source, field }: { source: RecordSource | undefined; field: string | undefined },
  used: readonly (string | null)[],
): NamedRecord[] {
  if (!source || field === undefined) return []
  const read = createCrmFieldReader(prepare)
  const target = read(source.object).find(({ name }) => name === field)?.target?.object
  const ids = [...new Set(used)].filter(id => id !== null)
  if (source.formOf(field) !== 'relation' || !target)
    return ids.map(id => ({ ...UNDESCRIBED, id, name: id, isDeleted: 0 }))
  const fields = read(target)
  const named = NAME_FIELDS.filter(name => fields.some(each => each.name === name))
  const position = fields.find(({ name }) => POSITIONS.includes(plain(name)))?.name
  const probability = fields.find(each => PROBABILITIES.includes(plain(each.name)))?.name
  const parent = fields.find(({ name }) => PIPELINES.includes(plain(name)))?.name
  const json = (name: string | undefined) =>
    name === undefined || /["\\]/.test(name) ? 'NULL' : `fields ->> ${literal(`$."${name}"`)}`
  const names = ['NULL', 'NULL', ...named.map(each => `nullif(${json(each)}, '')`)]
  const found = prepare<NamedRecord>(
    `SELECT id, coalesce(${names.join(', ')}) AS name, ${finiteReal(json(position))} AS position,
       ${finiteReal(json(probability))} AS probability, CAST(${idIn(json(parent))} AS TEXT) AS parent, _deleted_at IS NOT NULL AS isDeleted
     FROM crm_records WHERE object = ? ORDER BY id`,
  ).all(target)
  const known = new Set(found.map(({ id }) => id))
  const others = ids.filter(id => !known.has(id))
  return [...found, ...others.map(id => ({ ...UNDESCRIBED, id, name: null, isDeleted: 1 }))]
}

interface PipelineQuestion {
  source: RecordSource | undefined
  field: string | undefined
  facts: DealFacts
}

/** A stage with its pipeline: the pipeline of its record, else the only pipeline of the deals in it. */
export interface StageRecord extends NamedRecord {
  pipelineId: string | null
}

export function readStageRecords(
  prepare: Prepare,
  { source, field, facts }: PipelineQuestion,
): readonly StageRecord[] {
  const used = facts.groups.map(({ stage }) => stage)
  return recordsOf(prepare, { source, field }, used).map(record => {
    const own = new Set(
      facts.groups.flatMap(({ stage, pipeline }) => (stage === record.id ? (pipeline ?? []) : [])),
    )
    return { ...record, pipelineId: record.parent ?? (own.size === 1 ? ([...own][0] ?? null) : null) }
  })
}

const RENEWALS = [
  'renewal',
  'renewals',
  '更新',
  '契約更新',
  'Verlängerung',
  'renouvellement',
  'renovación',
].map(plain)

export function readPipelines(
  prepare: Prepare,
  {
    source,
    field,
    facts,
    stages,
    settings,
  }: PipelineQuestion & {
    stages: readonly StageRecord[]
    settings: Pick<Settings['crm'], 'salesPipelines' | 'renewalPipelines'>
  },
): Pipelines & { problems: readonly string[] } {
  const { salesPipelines: sales, renewalPipelines: renewals } = settings
  const records = recordsOf(
    prepare,
    { source, field },
    facts.groups.map(({ pipeline }) => pipeline),
  )
  const isNamed = (entry: string, { id, name }: NamedRecord) =>
    entry === id || (name !== null && plain(entry) === plain(name))
  const kindOf = (record: NamedRecord): PipelineRow['kind'] => {
    if (renewals?.some(entry => isNamed(entry, record))) return 'renewal'
    if (sales?.some(entry => isNamed(entry, record))) return 'sales'
    if (!renewals && record.name !== null && RENEWALS.includes(plain(record.name))) return 'renewal'
    return sales ? 'other' : 'sales'
  }
  const pipelineOf = new Map(stages.map(({ id, pipelineId }) => [id, pipelineId]))
  const percent = new Set(
    facts.groups.flatMap(({ pipeline, stage, most }) =>
      (most ?? 0) > 1 ? [pipeline ?? pipelineOf.get(stage ?? '') ?? null] : [],
    ),
  )
  const rows = records.map(record => ({
    pipeline_id: record.id,
    pipeline: record.name,
    kind: kindOf(record),
    position: record.position,
    is_percent: percent.has(record.id) ? (1 as const) : (0 as const),
  }))
  const names = records.map(({ id, name }) => name ?? id).join(', ')
  const unmatched = Object.entries({ sales_pipelines: sales, renewal_pipelines: renewals }).flatMap(
    ([name, entries = []]) =>
      entries
        .filter(entry => !records.some(record => isNamed(entry, record)))
        .map(entry => `crm.${name} names ${entry}, which is no pipeline. There are: ${names}.`),
  )
  const namedTwice = records
    .filter(record => [sales, renewals].every(entries => entries?.some(entry => isNamed(entry, record))))
    .map(
      ({ id, name }) =>
        `crm.sales_pipelines and crm.renewal_pipelines both name ${name ?? id}: expected one of them to name it.`,
    )
  const problems = records.length === 0 ? [] : [...unmatched, ...namedTwice]
  return { rows, isPercentWithout: percent.has(null), problems }
}

const isChance = (value: number | null): value is number => value !== null && value >= 0 && value <= 100

/**
 * What is known of the stages, and of the deals in them. The records of stages may hold shares where the deals of the
 * same pipeline hold per cent.
 */
export function stageFacts(
  stages: readonly StageRecord[],
  { groups }: DealFacts,
  { rows: pipelines, isPercentWithout }: Pipelines,
): (StageFacts & { isDeleted: boolean })[] {
  const inPercent = new Set(
    stages.flatMap(({ pipelineId, probability }) =>
      isChance(probability) && probability > 1 ? [pipelineId] : [],
    ),
  )
  return stages.map(({ id, name, position, probability, pipelineId, isDeleted }) => {
    const own = groups.filter(({ stage }) => stage === id)
    const pipeline = pipelines.find(({ pipeline_id }) => pipeline_id === pipelineId)
    const sum = (key: 'deals' | 'open' | 'closed' | 'won' | 'lost') =>
      own.reduce((all, group) => all + group[key], 0)
    const chances = own.flatMap(({ least, most }) => (least === null || most === null ? [] : [least, most]))
    const isPercent = pipeline === undefined ? isPercentWithout : pipeline.is_percent === 1
    const share = (value: number) => value / (isPercent ? 100 : 1)
    return {
      id,
      name,
      pipelineId,
      pipeline: pipeline?.pipeline ?? null,
      position,
      chance: isChance(probability) ? probability / (inPercent.has(pipelineId) ? 100 : 1) : null,
      isDeleted: isDeleted === 1,
      deals: sum('deals'),
      open: sum('open'),
      closed: sum('closed'),
      won: sum('won'),
      lost: sum('lost'),
      probability:
        chances.length === 0
          ? null
          : { least: share(Math.min(...chances)), most: share(Math.max(...chances)) },
    }
  })
}
