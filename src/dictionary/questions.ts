import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * The questions that come with parley: files of `drizzle/questions`. A file begins with its question as a comment, says
 * what its parameters mean, and holds one statement, whose first common table expression has the parameters.
 */
export interface Question {
  name: string
  question: string
  parameters: readonly Parameter[]
  /** The whole file, comments included. */
  sql: string
}

export interface Parameter {
  name: string
  /** The SQL expression that it has in the file. */
  value: string
  /** What it means; several parameters may share one sentence. */
  about: string
}

/** In the package and in a clone alike, next to `src` and `dist`. */
const FOLDER = new URL('../../drizzle/questions/', import.meta.url)

const ENDING = '.sql'

/** All of them, in the order of their names. */
export function readQuestions(): Question[] {
  return readdirSync(FOLDER)
    .filter(file => file.endsWith(ENDING))
    .sort()
    .map(file => questionOf(file.slice(0, -ENDING.length), readFileSync(new URL(file, FOLDER), 'utf8')))
}

export function questionFile(name: string): string {
  return fileURLToPath(new URL(`${name}${ENDING}`, FOLDER))
}

const PARAMETERS = /^WITH parameters AS \(\n {2}SELECT\n {4}(.*?)\n\)/ms

/** Pure. */
export function questionOf(name: string, sql: string): Question {
  const [first = '', ...lines] = sql.split('\n')
  const meanings = new Map(
    lines.flatMap(line => {
      const [, names = '', about = ''] = /^-- {3}([\w, ]+?) {2,}(\S.*)$/.exec(line) ?? []
      return names.split(', ').map(each => [each, about] as const)
    }),
  )
  const [, block = ''] = PARAMETERS.exec(sql) ?? []
  // A comma at the end of a line of this depth stands between two parameters.
  const parameters = block.split(/,\n {4}(?! )/).flatMap(item => {
    const [, value, parameter] = /^(.*) AS (\w+)$/s.exec(item) ?? []
    if (value === undefined || parameter === undefined) return []
    return [{ name: parameter, value, about: meanings.get(parameter) ?? '' }]
  })
  return { name, question: first.replace(/^-- /, ''), parameters, sql }
}
