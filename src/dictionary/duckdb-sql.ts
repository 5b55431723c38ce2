import type { DescribedKind, DescribedTable } from './described.ts'

/**
 * A question's statement for DuckDB, made of the one for SQLite. Each table that it reads is put before it under the
 * same name, with times, days, booleans and JSON in the form that SQLite has them, so that both statements compare and
 * cut the same values. What is left are functions and words that DuckDB spells in another way. Pure.
 */
export function duckdbSql(sql: string, tables: readonly DescribedTable[]): string {
  const at = sql.search(/^WITH /m)
  const body = respelled(withoutIndex(sql.slice(at)))
  const read = new Set([...body.matchAll(/(?:\bFROM|\bJOIN|,)\s+(\w+)/g)].map(([, name]) => name))
  const words = new Set(body.match(/\w+/g))
  const forms = tables.filter(({ name }) => read.has(name)).map(table => formOf(table, words))
  return `${sql.slice(0, at)}WITH ${[...forms, body.slice('WITH '.length)].join(',\n')}`
}

// ------------------------------------------------------------------------------------------------ tables

/** Under its own name, with the columns that the statement names in SQLite's form. */
function formOf({ name, columns }: DescribedTable, words: ReadonlySet<string>): string {
  const replaced = columns.flatMap(({ name: column, kind }) => {
    const form = FORMS[kind]
    return form !== undefined && words.has(column) ? [`${form(column)} AS ${column}`] : []
  })
  const replace = replaced.length === 0 ? '' : ` REPLACE (\n    ${replaced.join(',\n    ')})`
  return `${name} AS (\n  SELECT *${replace} FROM main.${name}\n)`
}

const INSTANT = "'%Y-%m-%dT%H:%M:%S.%gZ'"

const FORMS: Readonly<Partial<Record<DescribedKind, (column: string) => string>>> = {
  timestamp: column => `strftime(CAST(${column} AS TIMESTAMPTZ) AT TIME ZONE 'UTC', ${INSTANT})`,
  date: column => `CAST(${column} AS VARCHAR)`,
  boolean: column => `CAST(${column} AS INTEGER)`,
  json: column => `CAST(${column} AS JSON)`,
}

/** The full-text index is SQLite's: without it every transcript is read. */
function withoutIndex(body: string): string {
  return body
    .replace(/ {2}SELECT [^;]*?JOIN search_transcripts [^;]*?UNION ALL\n/, '')
    .replace(/\s+AND t\._id > \(SELECT indexed_up_to FROM search_indices[^)]*\)/, '')
}

// ------------------------------------------------------------------------------------------------ words

function respelled(body: string): string {
  const called = Object.entries(CALLS).reduce((text, [name, call]) => withCalls(text, name, call), body)
  return WORDS.reduce((text, [from, to]) => text.replace(from, to), called)
}

const WORDS: readonly (readonly [RegExp, string])[] = [
  [/\bCROSS JOIN (\w+(?: \w+)?)(\s+)ON\b/g, 'JOIN $1$2ON'],
  [/\bIS NOT 1\b/g, 'IS DISTINCT FROM 1'],
  // Both compare small letters and capitals alike.
  [/\bLIKE\b/g, 'ILIKE'],
  // Of two whole numbers, as in SQLite.
  [/\) \/ (\d+)\b/g, ') // $1'],
  [/\bSELECT value FROM/g, "SELECT value ->> '$$' FROM"],
  [/\b(json_type\([\w.]+\)) = 'text'/g, "$1 = 'VARCHAR'"],
  // There it binds less than a comparison does.
  [/\b[\w.]+ ->> (?:[\w.]+|'[^']*')/g, '($&)'],
]

type Call = (args: readonly string[], whole: string) => string

/** Each call of a function, its arguments first. */
function withCalls(text: string, name: string, call: Call): string {
  const begin = text.search(new RegExp(`\\b${name}\\(`))
  if (begin < 0) return text
  const open = begin + name.length
  const { end, args } = callAt(text, open)
  const inner = args.map(arg => withCalls(arg, name, call))
  const made = call(inner, `${name}(${inner.join(', ')})`)
  return `${text.slice(0, begin)}${made}${withCalls(text.slice(end), name, call)}`
}

/** The arguments between the bracket at `open` and the one that closes it, and where that ends. */
function callAt(text: string, open: number): { end: number; args: string[] } {
  const args: string[] = []
  let depth = 0
  let from = open + 1
  for (const { 0: found, index } of text.slice(open).matchAll(/'(?:[^']|'')*'|[(),]/g)) {
    const at = open + index
    if (found === '(') depth += 1
    if (found === ')') depth -= 1
    if (depth === 0 || (depth === 1 && found === ',')) {
      args.push(text.slice(from, at).trim())
      from = at + 1
    }
    if (depth === 0) return { end: at + 1, args }
  }
  throw new RangeError('a call in a question is not closed')
}

const NOW = "(now() AT TIME ZONE 'UTC')"
const timeOf = (argument: string): string => (argument === "'now'" ? NOW : `CAST(${argument} AS TIMESTAMP)`)

const CALLS: Readonly<Record<string, Call>> = {
  strftime: ([format = '', time = ''], whole) =>
    FORMATS[format] === undefined ? whole : FORMATS[format](timeOf(time)),
  date: ([time = '', ...modifiers]) => `strftime(${modifiers.reduce(shifted, timeOf(time))}, '%Y-%m-%d')`,
  julianday: ([time = '']) => `julian(${timeOf(time)})`,
  iif: args => `if(${args.join(', ')})`,
  max: ([...args], whole) => (args.length === 2 ? `greatest(${args.join(', ')})` : whole),
}

const FORMATS: Readonly<Record<string, (time: string) => string>> = {
  "'%Y-%m-%dT%H:%M:%fZ'": time => `strftime(${time}, ${INSTANT})`,
  "'%m'": time => `month(${time})`,
}

function shifted(time: string, modifier: string): string {
  if (modifier === "'start of month'") return `date_trunc('month', ${time})`
  return `${time} + CAST(${modifier.replace(/^'\+/, "'")} AS INTERVAL)`
}
