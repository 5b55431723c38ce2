import { describe, expect, test } from 'vitest'
import { METRICS } from '../../src/dictionary/metrics.ts'
import { parley } from '../cli/parley.ts'

/** What `parley schema --ossie` prints, against the rules of Apache Ossie 0.1.1, written here from its specification. */

type Rule = 'text' | 'flag' | ShapeName | { listOf: 'text' | ShapeName; least?: number }

type ShapeName = 'document' | 'model' | 'relationship' | 'metric' | 'context' | PartName
type PartName = 'dataset' | 'field' | 'dimension' | 'expression' | 'dialect'

interface Shape {
  must: Readonly<Record<string, Rule>>
  may?: Readonly<Record<string, Rule>>
}

const DESCRIBED = { description: 'text', ai_context: 'context' } as const

const SHAPES: Readonly<Record<ShapeName, Shape>> = {
  document: { must: { version: 'text', semantic_model: { listOf: 'model' } } },
  model: {
    must: { name: 'text', datasets: { listOf: 'dataset', least: 1 } },
    may: { ...DESCRIBED, relationships: { listOf: 'relationship' }, metrics: { listOf: 'metric' } },
  },
  dataset: {
    must: { name: 'text', source: 'text' },
    may: { ...DESCRIBED, primary_key: { listOf: 'text' }, fields: { listOf: 'field' } },
  },
  field: {
    must: { name: 'text', expression: 'expression' },
    may: { ...DESCRIBED, label: 'text', dimension: 'dimension' },
  },
  dimension: { must: {}, may: { is_time: 'flag' } },
  relationship: {
    must: {
      name: 'text',
      from: 'text',
      to: 'text',
      from_columns: { listOf: 'text', least: 1 },
      to_columns: { listOf: 'text', least: 1 },
    },
    may: { ai_context: 'context' },
  },
  metric: { must: { name: 'text', expression: 'expression' }, may: DESCRIBED },
  expression: { must: { dialects: { listOf: 'dialect', least: 1 } } },
  dialect: { must: { dialect: 'text', expression: 'text' } },
  /** A text may stand for it. */
  context: { must: {}, may: { instructions: 'text', synonyms: { listOf: 'text' } } },
}

/** Where a value breaks a rule. */
function faults(value: unknown, rule: Rule, at: string): string[] {
  if (typeof rule === 'object') {
    if (!Array.isArray(value) || value.length < (rule.least ?? 0)) return [at]
    return value.flatMap((each, place) => faults(each, rule.listOf, `${at}[${place}]`))
  }
  if (rule === 'text' || (rule === 'context' && typeof value === 'string'))
    return typeof value === 'string' && value !== '' ? [] : [at]
  if (rule === 'flag') return typeof value === 'boolean' ? [] : [at]
  if (value === null || typeof value !== 'object') return [at]
  const { must, may = {} } = SHAPES[rule]
  const rules = { ...may, ...must }
  const missing = Object.keys(must).filter(name => !(name in value))
  return [
    ...missing.map(name => `${at}.${name}`),
    ...Object.entries(value).flatMap(([name, each]) => {
      const of = rules[name]
      return of === undefined ? [`${at}.${name}`] : faults(each, of, `${at}.${name}`)
    }),
  ]
}

interface Model {
  datasets: { name: string; source: string; primary_key?: string[]; fields: { name: string }[] }[]
  relationships: { name: string; from: string; to: string; from_columns: string[]; to_columns: string[] }[]
  metrics: { name: string; expression: { dialects: { dialect: string; expression: string }[] } }[]
}

async function printed(...args: readonly string[]): Promise<{ version: string; semantic_model: [Model] }> {
  const { stdout } = await parley(['schema', '--ossie', ...args])
  return JSON.parse(stdout)
}

const fieldsIn = ({ datasets }: Model) =>
  new Map(datasets.map(({ name, fields }) => [name, fields.map(field => field.name)]))

describe('the semantic model of Apache Ossie', () => {
  test('the printed model has the form of version 0.1.1', async () => {
    const document = await printed()
    expect(document.version).toBe('0.1.1')
    expect(faults(document, 'document', '')).toEqual([])
  })

  test('no two datasets, relationships or metrics, and no two fields of a dataset, have one name', async () => {
    const [model] = (await printed()).semantic_model
    const lists = [model.datasets, model.relationships, model.metrics, ...model.datasets.map(d => d.fields)]
    for (const list of lists) {
      const names = list.map(({ name }) => name)
      expect(names).toEqual([...new Set(names)])
    }
  })

  test('keys and both ends of a relationship are fields, and it leads to a key', async () => {
    const [model] = (await printed()).semantic_model
    const fields = fieldsIn(model)
    for (const { name, primary_key: key = [] } of model.datasets)
      expect(fields.get(name)).toEqual(expect.arrayContaining(key))
    expect(model.relationships.length).toBeGreaterThan(15)
    for (const { from, to, from_columns: columns, to_columns: key } of model.relationships) {
      expect(fields.get(from)).toEqual(expect.arrayContaining(columns))
      expect(model.datasets.find(({ name }) => name === to)?.primary_key).toEqual(key)
      expect(columns).toHaveLength(key.length)
    }
  })

  test('a metric is for ANSI SQL and names only fields, each with its dataset', async () => {
    const [model] = (await printed()).semantic_model
    const fields = fieldsIn(model)
    expect(model.metrics.map(({ name }) => name)).toEqual(METRICS.map(({ name }) => name))
    for (const { expression } of model.metrics) {
      const [{ dialect, expression: sql } = { dialect: '', expression: '' }] = expression.dialects
      expect(dialect).toBe('ANSI_SQL')
      const named = [...sql.replace(/'[^']*'/g, '').matchAll(/(\w+)\.(\w+)/g)]
      expect(named).not.toEqual([])
      for (const [, dataset = '', field] of named) expect(fields.get(dataset)).toContain(field)
    }
  })

  test('the sources are where --catalogue says, and only of tables that --tables names', async () => {
    const [model] = (await printed('--catalogue', 'main.reports', '--tables', 'deals,pipelines'))
      .semantic_model
    expect(model.datasets.map(({ source }) => source)).toEqual([
      'main.reports.deals',
      'main.reports.pipelines',
    ])
    expect(model.relationships.map(({ to }) => to)).toEqual(['pipelines'])
    expect(
      new Set(
        model.metrics.map(
          ({ expression }) => /\b(\w+)\./.exec(expression.dialects[0]?.expression ?? '')?.[1],
        ),
      ),
    ).toEqual(new Set(['deals']))
  })
})
