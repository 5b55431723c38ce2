import { expect, test } from 'vitest'
import { ENGINES, type QueryEngine } from '../../src/commands/schema/engine-dialects.ts'
import { engineViews } from '../../src/commands/schema/engine-views.ts'
import type { CrmFieldDescription, CrmObjectDescription } from '../../src/dictionary/crm-tables.ts'

const field = (name: string, more: Partial<CrmFieldDescription> = {}): CrmFieldDescription => ({
  name,
  label: null,
  type: 'text',
  kind: 'text',
  column: name,
  labelledColumn: name,
  isRelation: false,
  refersTo: [],
  ...more,
})

const object = (name: string, fields: readonly CrmFieldDescription[]): CrmObjectDescription => ({
  name,
  label: null,
  table: `crm_${name}`,
  liveView: `live_crm_${name}`,
  labelledView: `labelled_crm_${name}`,
  fields,
})

const relation = (name: string, label: string, ...refersTo: string[]) =>
  field(name, { labelledColumn: label, isRelation: true, refersTo })

const OBJECTS = [
  object('visit!', [
    field('odd', { labelledColumn: 'a `b` "c" \\' }),
    relation('company', 'Company', 'crm_company.id'),
    relation('owner', 'Owner', 'members.id'),
    relation('other', 'Other', 'crm_nameless.id'),
    relation('gone', 'Gone'),
  ]),
  object('company', [field('title'), field('name', { column: 'name_2' }), field('label', { kind: 'any' })]),
  object('nameless', [field('amount', { kind: 'any' })]),
]

const FOLDER = /^crm_visit_-[0-9a-f]{8}$/

function viewOf(engine: QueryEngine, prefix: string): { name: string; sql: string } {
  const sql = engineViews(engine, OBJECTS)
    .split(';\n')
    .find(statement => statement.includes(`${prefix}_crm_visit`))
  const [, name = ''] = /VIEW (\S+) AS/.exec(sql ?? '') ?? []
  return { name: name.slice(1, -1), sql: sql?.trim().split('\n').slice(1).join('\n') ?? '' }
}

test('the name of a view is that of the published table, with its prefix', () => {
  for (const engine of ENGINES) {
    expect(viewOf(engine, 'labelled').name.slice('labelled_'.length)).toMatch(FOLDER)
    expect(viewOf(engine, 'live').name.slice('live_'.length)).toMatch(FOLDER)
  }
})

test.each([
  ['spark', 't.`odd` AS `a ``b`` "c" \\`'],
  ['trino', 't."odd" AS "a `b` ""c"" \\"'],
  ['clickhouse', 't.`odd` AS `a \\`b\\` "c" \\\\`'],
] as const)('a label is quoted as %s reads it', (engine, column) => {
  expect(viewOf(engine, 'labelled').sql).toContain(`, ${column}, `)
})

test('a labelled view shows the name of a related row, or its id where no name is known', () => {
  const { name, sql } = viewOf('trino', 'labelled')
  const table = name.slice('labelled_'.length)
  expect(sql.split('\n').slice(1)).toEqual([
    `FROM lake.parley."${table}" t`,
    `LEFT JOIN (SELECT "id", coalesce(nullif("name_2", ''), nullif("title", '')) AS "name" FROM lake.parley."crm_company") n1 ON n1."id" = t."company"`,
    `LEFT JOIN (SELECT "id", nullif("name", '') AS "name" FROM lake.parley."members") n2 ON n2."id" = t."owner"`,
    'WHERE t."_deleted_at" IS NULL',
  ])
  expect(sql).toContain(
    'coalesce(n1."name", t."company") AS "Company", coalesce(n2."name", t."owner") AS "Owner", t."other" AS "Other", t."gone" AS "Gone",',
  )
})

test('a live view has the columns of the table, and names no other table', () => {
  expect(viewOf('clickhouse', 'live').sql).toBe(
    `SELECT t.\`id\` AS \`id\`, ${['odd', 'company', 'owner', 'other', 'gone', 'created_at', 'updated_at']
      .map(column => `t.\`${column}\` AS \`${column}\``)
      .join(', ')}
FROM lake.\`parley.${viewOf('clickhouse', 'live').name.slice('live_'.length)}\` t
WHERE t.\`_deleted_at\` IS NULL`,
  )
})

test('an apostrophe in a label does not hide the end of the statement from the command line of Spark', () => {
  const sql = engineViews('spark', [object('visit', [field('tier', { labelledColumn: "Customer's tier" })])])
  const [, end] = sql.split("`Customer's tier`")
  expect(end).toMatch(/IS NULL -- '\n;\n$/)
})

test('the views of Spark are temporary, since the catalogue stores none', () => {
  const created = engineViews('spark', OBJECTS).match(/^CREATE .*? AS$/gm) ?? []
  expect(created.length).toBeGreaterThan(20)
  expect(created.filter(line => !line.startsWith('CREATE OR REPLACE TEMPORARY VIEW `'))).toEqual([])
})

test('views that read a table which is not published are left out', () => {
  const sql = engineViews('trino', OBJECTS, {
    tables: ['messages', 'transcript_entries', 'CRM_visit!', 'members'],
  })
  const created = sql.match(/(?<=^CREATE OR REPLACE VIEW ")[^"]+/gm) ?? []
  const visit = viewOf('trino', 'live').name
  expect(created).toEqual(['live_members', 'live_messages', visit, visit.replace('live', 'labelled')])
  expect(sql).toContain('t."company" AS "Company", coalesce(n1."name", t."owner") AS "Owner"')
})

test('a name that no published table can have is refused', () => {
  expect(() => engineViews('spark', OBJECTS, { tables: ['mesages'] })).toThrow('Unknown table "mesages"')
  expect(engineViews('spark', [], { tables: ['crm_deal', 'members'] })).toContain('VIEW `live_members`')
})

test.each([
  ['spark', 'FROM sales.calls.`members` t'],
  ['trino', 'FROM sales.calls."members" t'],
  ['clickhouse', 'FROM sales.calls.`parley.members` t'],
] as const)('the published tables of %s may be in another catalogue', (engine, from) => {
  const sql = engineViews(engine, OBJECTS, { catalogue: 'sales.calls' })
  expect(sql).toContain(from)
  expect(sql).not.toContain('lake.')
})
