import { CATALOG, type PlacedTable, TABLES } from '../src/catalog/catalog.ts'
import type { Resource, Table } from '../src/catalog/resource.ts'
import { CONVENIENCE_VIEWS } from '../src/dictionary/convenience-views.ts'
import { type Area, type DescribedTable, fullMeaning } from '../src/dictionary/described.ts'
import { DICTIONARY, describedTable } from '../src/dictionary/dictionary.ts'
import { rowLifecycle } from '../src/dictionary/resource-tables.ts'
import { DICTIONARY_TABLE, QUESTIONS_TABLE, SYNC_TABLES } from '../src/dictionary/sync-tables.ts'

/** Where the generated part of `drizzle/README.md` begins; what stands above is written by hand. */
const MARK = '<!-- From here on written by `npm run schema` from the declarations in src/resources. -->'

/** The page with its generated part made anew. */
export function withSchema(page: string): string {
  const [written = ''] = page.split(MARK)
  return `${written}${MARK}\n\n${schemaDocument()}`
}

/** The warehouse in Markdown: pictures, then every table of the resources and what analysts may query beside them. */
function schemaDocument(): string {
  return `${[
    '## Pictures',
    'Only the columns by which rows are found and joined. Where a line ends in two bars, the file sees to it that the row named is there; where it ends in a bar and a circle, that row may be missing.',
    ...PICTURES.flatMap(picture),
    '## Tables',
    contents(),
    ...CATALOG.filter(hasTables).flatMap(resourceSection),
    '### Views made for convenience',
    ...CONVENIENCE_VIEWS.filter(({ name }) => !name.startsWith('live_')).flatMap(section),
    '### Sync state',
    'What parley knows about its own work. Every `sync_*` table that is not named here is internal.',
    ...SYNC_TABLES.flatMap(section),
    '### The dictionary and the questions',
    ...section(DICTIONARY_TABLE),
    ...section(QUESTIONS_TABLE),
  ].join('\n\n')}\n`
}

const hasTables = ({ tables }: Resource): boolean => tables.length > 0

function contents(): string {
  const others = [...CONVENIENCE_VIEWS, ...SYNC_TABLES, DICTIONARY_TABLE, QUESTIONS_TABLE]
  const lists: [about: string, names: readonly string[]][] = [
    ...CATALOG.filter(hasTables).map(({ about, tables }): [string, string[]] => [
      about,
      tables.flatMap(withChildren).map(({ name }) => name),
    ]),
    ['More', others.map(({ name }) => name).filter(name => !name.startsWith('live_'))],
  ]
  return lists.map(([about, names]) => `- ${about}: ${names.map(linkTo).join(', ')}`).join('\n')
}

const withChildren = (table: Table): Table[] => [
  table,
  ...table.children.flatMap(child => withChildren(child.table)),
]

const linkTo = (name: string): string => `[\`${name}\`](#${name})`

function resourceSection({ about, tables }: Resource): string[] {
  const placed = tables.flatMap(withChildren).flatMap(({ name }) => TABLES.get(name) ?? [])
  return [`### ${about}`, ...placed.flatMap(tableSection)]
}

function tableSection(placed: PlacedTable): string[] {
  const table = describedTable(placed.table.name)
  return table ? section({ ...table, about: `${table.about} _${rowLifecycle(placed)}._` }) : []
}

function section({ name, form, about, columns }: DescribedTable): string[] {
  // The underscored ones are told of once, or internal.
  const rows = columns
    .filter(column => !column.name.startsWith('_'))
    .map(column => [`\`${column.name}\``, column.kind, column.isKey ? 'key' : '', fullMeaning(column)])
  return [
    `#### ${name}`,
    form === 'view' ? `${about} _View._` : about,
    markdownTable(['column', 'type', 'key', 'meaning'], rows),
  ]
}

// -------------------------------------------------------------------------------------------------- pictures

interface Picture {
  title: string
  areas: readonly Area[]
}

const PICTURES: readonly Picture[] = [
  { title: 'People', areas: ['people'] },
  { title: 'Timeline and e-mails', areas: ['timeline', 'mail'] },
  { title: 'Meetings and playbooks', areas: ['meetings'] },
  { title: 'CRM', areas: ['crm'] },
]

function picture({ title, areas }: Picture): string[] {
  const tables = DICTIONARY.filter(({ form, area }) => form === 'table' && areas.includes(area))
  const lines = [...tables.map(entityBox), ...tables.flatMap(relations)]
  return [`### ${title}`, ['```mermaid', 'erDiagram', ...lines, '```'].join('\n')]
}

function entityBox({ name, columns }: DescribedTable): string {
  const shown = columns.filter(({ isKey, refersTo }) => isKey || refersTo.length > 0)
  const lines = shown.map(column => {
    const marks = [...(column.isKey ? ['PK'] : []), ...(column.refersTo.length > 0 ? ['FK'] : [])]
    return `    ${column.kind} ${column.name} ${marks.join(', ')}`
  })
  return [`  ${name} {`, ...lines, '  }'].join('\n')
}

/** One line for each table that rows of this one name, with the columns that do so. */
function relations({ name, columns }: DescribedTable): string[] {
  const by = new Map<string, string[]>()
  for (const column of columns) {
    const isKept = TABLES.get(name)?.table.columns[column.name]?.source.from === 'parent'
    for (const target of column.refersTo) {
      const [table = ''] = target.split('.')
      const line = `${table} ${isKept && TABLES.get(name)?.parent ? '||' : '|o'}--o{ ${name}`
      by.set(line, [...(by.get(line) ?? []), column.name])
    }
  }
  return [...by].map(([line, names]) => `  ${line} : "${names.join(', ')}"`)
}

/** In the formatter's shape: every column as wide as its widest cell. */
function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [head, ...rows].map(row => row.map(cell => cell.replaceAll('|', '\\|')))
  const widths = head.map((_, column) => Math.max(...cells.map(row => row[column]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  const [titles, ...body] = cells.map(line)
  return [titles, line(widths.map(width => '-'.repeat(width))), ...body].join('\n')
}
