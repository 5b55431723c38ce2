import type { DescribedKind, DescribedTable } from './described-table.ts'

/**
 * Translates a question's statement from SQLite to DuckDB. For each table that the statement reads, a common table
 * expression of the same name gives timestamps, dates, booleans and JSON in SQLite's form, so that both statements
 * compare and cut the same values. Functions and keywords that DuckDB spells differently are replaced. Pure.
 */
export function duckdbSql(sql: string, tables: readonly DescribedTable[]): string {
  if (/(FROM|JOIN) (periods|deal_facts)\b|FROM deals\nWHERE/.test(sql)) return sql
  if (/\bINTEGER\b/.test(sql)) {
    throw new RangeError(
      'A question in drizzle/questions has INTEGER, which is 32 bits in DuckDB: write BIGINT',
    )
  }
  const at = sql.search(/^WITH /m)
  const body = inDuckdbSpelling(withoutIndex(sql.slice(at)))
  const read = new Set([...body.matchAll(/(?:\bFROM|\bJOIN|,)\s+(\w+)/g)].map(([, name]) => name))
  const words = new Set(body.match(/\w+/g))
  const own = new Set([...body.matchAll(/\b(\w+) AS (?:MATERIALIZED )?\(/g)].map(([, name]) => name))
  const forms = tables
    .filter(({ name }) => read.has(name) && !own.has(name))
    .map(table => formOf(table, words))
  return `${sql.slice(0, at)}WITH ${[...forms, body.slice('WITH '.length)].join(',\n')}`
}

// ------------------------------------------------------------------------------------------------ tables

/** A common table expression with the table's name. In it, the columns that the statement uses have SQLite's form. */
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

/** Removes the use of the full-text index, which only SQLite has. The statement then reads every transcript. */
function withoutIndex(body: string): string {
  const join = body.indexOf('JOIN search_transcripts ')
  const from = body.lastIndexOf('  SELECT ', join)
  const next = body.indexOf('UNION ALL\n', join) + 'UNION ALL\n'.length
  const withoutPart = join < 0 ? body : body.slice(0, from) + body.slice(next)
  return withoutPart.replace(/(?<!\s)\s+AND t\._id > \(SELECT indexed_up_to FROM search_indices[^)]*\)/, '')
}

// ------------------------------------------------------------------------------------------------ words

function inDuckdbSpelling(body: string): string {
  const called = Object.entries(CALLS).reduce((text, [name, call]) => withCalls(text, name, call), body)
  return WORDS.reduce((text, [from, to]) => text.replace(from, to), called)
}

const WORDS: readonly (readonly [RegExp, string])[] = [
  [/\bCROSS JOIN (\w+(?: \w+)?)(\s+)ON\b/g, 'JOIN $1$2ON'],
  [/\bIS NOT 1\b/g, 'IS DISTINCT FROM 1'],
  // SQLite's LIKE ignores case, as ILIKE does.
  [/\bLIKE\b/g, 'ILIKE'],
  // SQLite divides integers without a remainder, as // does.
  [/\) \/ (\d+)\b/g, ') // $1'],
  [/\bSELECT value FROM/g, "SELECT value ->> '$$' FROM"],
  [/\b(json_type\([\w.]+\)) = 'text'/g, "$1 = 'VARCHAR'"],
  // In DuckDB a comparison binds more tightly than ->>, so ->> gets parentheses.
  [/(?<![\w.])[\w.]+ ->> (?:[\w.]+|'[^']*')/g, '($&)'],
]

type CallTranslation = (args: readonly string[], whole: string) => string

/** The text with each call of the function replaced, innermost calls first. */
function withCalls(text: string, name: string, call: CallTranslation): string {
  const begin = text.search(new RegExp(`\\b${name}\\(`))
  if (begin < 0) return text
  const open = begin + name.length
  const { end, args } = callAt(text, open)
  const inner = args.map(arg => withCalls(arg, name, call))
  const made = call(inner, `${name}(${inner.join(', ')})`)
  return `${text.slice(0, begin)}${made}${withCalls(text.slice(end), name, call)}`
}

/** The arguments of the call whose opening parenthesis is at `open`, and the offset after its closing parenthesis. */
function callAt(text: string, open: number): { end: number; args: string[] } {
  const args: string[] = []
  let depth = 0
  let from = open + 1
  for (const { 0: found, index } of text.slice(open).matchAll(/'[^']*'|[(),]/g)) {
    const at = open + index
    if (found === '(') depth += 1
    if (found === ')') depth -= 1
    if (depth === 0 || (depth === 1 && found === ',')) {
      args.push(text.slice(from, at).trim())
      from = at + 1
    }
    if (depth === 0) return { end: at + 1, args }
  }
  throw new RangeError(
    'The SQL of a question in drizzle/questions has a function call without a closing parenthesis',
  )
}

const NOW = "(now() AT TIME ZONE 'UTC')"
const timeOf = (argument: string): string => (argument === "'now'" ? NOW : `CAST(${argument} AS TIMESTAMP)`)

const CALLS: Readonly<Record<string, CallTranslation>> = {
  strftime: ([format = '', time = ''], whole) =>
    FORMATS[format] === undefined ? whole : FORMATS[format](timeOf(time)),
  date: ([time = '', ...modifiers]) =>
    `strftime(${modifiers.reduce(timeShiftedBy, timeOf(time))}, '%Y-%m-%d')`,
  julianday: ([time = '']) => `julian(${timeOf(time)})`,
  iif: args => `if(${args.join(', ')})`,
  // SQLite rounds the exact value of a double, DuckDB its multiple: 2.65 would be 2.6 in one and 2.7 in the other.
  round: ([value, digits], whole) =>
    digits === undefined
      ? whole
      : `CAST(round(CAST(format('{:.20f}', CAST(${value} AS DOUBLE)) AS DECIMAL(38, 20)), ${digits}) AS DOUBLE)`,
  // Like SQLite's avg, it does not add up the errors of its additions.
  avg: ([value]) => `favg(${value})`,
  // A question fails with a text by a path that is none.
  json_extract: ([, text]) => `error(${text})`,
  max: ([...args], whole) => (args.length === 2 ? `greatest(${args.join(', ')})` : whole),
}

const FORMATS: Readonly<Record<string, (time: string) => string>> = {
  "'%Y-%m-%dT%H:%M:%fZ'": time => `strftime(${time}, ${INSTANT})`,
  "'%m'": time => `month(${time})`,
}

function timeShiftedBy(time: string, modifier: string): string {
  if (modifier === "'start of month'") return `date_trunc('month', ${time})`
  return `${time} + CAST(${modifier.replace(/^'\+/, "'")} AS INTERVAL)`
}
