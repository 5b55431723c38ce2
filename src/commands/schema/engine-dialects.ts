/** The engines that read the tables of `parley publish`, and how they write SQL. Pure. */

export const ENGINES = ['spark', 'trino', 'clickhouse'] as const

export type QueryEngine = (typeof ENGINES)[number]

export interface Dialect {
  /** What to do before the statements. Each line becomes an SQL comment. */
  preface: readonly string[]
  createView: string
  quote(name: string): string
  /** The name of the catalogue in an engine that is connected as drizzle/engines.md says. */
  catalogue: string
  /** A published table as it stands in FROM, after the name of the catalogue. */
  table(name: string): string
  /** @param sql without a semicolon at its end */
  statement(sql: string): string
}

const withSemicolon = (sql: string) => `${sql};`

const inBackticks = (name: string) => `\`${name.replaceAll('`', '``')}\``
const inDoubleQuotes = (name: string) => `"${name.replaceAll('"', '""')}"`
/** In ClickHouse, a backslash in quotes is an escape. */
const inEscapedBackticks = (name: string) => `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``

export const DIALECTS: Readonly<Record<QueryEngine, Dialect>> = {
  spark: {
    preface: [
      'The views are temporary: the catalogue of the published tables is read-only and does not store them.',
      'Run this in every session.',
    ],
    createView: 'CREATE OR REPLACE TEMPORARY VIEW',
    quote: inBackticks,
    catalogue: 'lake.parley',
    table: inBackticks,
    statement: sparkStatement,
  },
  trino: {
    preface: [
      'The catalog of the published tables is read-only. Run this in a schema of another one that stores views.',
    ],
    createView: 'CREATE OR REPLACE VIEW',
    quote: inDoubleQuotes,
    catalogue: 'lake.parley',
    table: inDoubleQuotes,
    statement: withSemicolon,
  },
  clickhouse: {
    preface: [
      'The published tables are those of a database of the engine DataLakeCatalog. Run this in another database.',
    ],
    createView: 'CREATE OR REPLACE VIEW',
    quote: inEscapedBackticks,
    catalogue: 'lake',
    table: name => inEscapedBackticks(`parley.${name}`),
    statement: withSemicolon,
  },
}

/**
 * An SQL statement as Spark's command line `spark-sql` must find it in a file. `spark-sql` splits the file at
 * semicolons outside quotes and comments, but does not know backticks: an apostrophe in the name of a CRM field would
 * hide every semicolon up to the next apostrophe. So a comment at the end closes what a name has opened, and a
 * semicolon in a name gets a backslash, which `spark-sql` removes. Pure.
 * @param sql one statement, without a semicolon at its end
 */
export function sparkStatement(sql: string): string {
  let state: SplitState = { inside: undefined, depth: 0, isEscaped: false }
  let written = ''
  for (let place = 0; place < sql.length; place += 1) {
    const isSplit = sql[place] === ';' && state.inside === undefined
    written += isSplit ? '\\;' : sql[place]
    state = stateAfter(state, sql.slice(Math.max(0, place - 1), place), sql.slice(place, place + 2))
  }
  return `${written}${closing(state)};`
}

/** The kind of quotes or comment in which `spark-sql` takes the next character to be. */
interface SplitState {
  inside: "'" | '"' | '--' | '/*' | undefined
  /** How deep comments are nested. */
  depth: number
  /** Whether a backslash precedes the next character. */
  isEscaped: boolean
}

/** @param pair the character and the one after it */
function stateAfter({ inside, depth, isEscaped }: SplitState, previous: string, pair: string): SplitState {
  const character = pair.charAt(0)
  const next = { inside, depth, isEscaped: !isEscaped && character === '\\' }
  if (character === "'" || character === '"') {
    if (isEscaped) return next
    if (inside === undefined) return { ...next, inside: character }
    return inside === character ? { ...next, inside: undefined } : next
  }
  if (pair === '--' && inside === undefined) return { ...next, inside: '--' }
  if (character === '\n' && inside === '--' && !isEscaped) return { ...next, inside: undefined }
  const isComment = inside === '/*'
  if (character === '/' && previous === '*' && isComment)
    return { ...next, inside: depth === 1 ? undefined : inside, depth: depth - 1 }
  if (pair === '/*' && (isComment || inside === undefined)) return { ...next, inside: '/*', depth: depth + 1 }
  return next
}

function closing({ inside, depth }: SplitState): string {
  if (inside === undefined) return ''
  if (inside === '--') return '\n'
  return ` -- ${inside === '/*' ? '*/'.repeat(depth) : inside}\n`
}
