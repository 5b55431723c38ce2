import { readdirSync, readFileSync } from 'node:fs'

/** A file of `drizzle/questions`: its first line is the question, then come its parameters, then one statement. */
export interface QuestionFile {
  name: string
  sql: string
  question: string
  /** Names that the comment explains. */
  explained: readonly string[]
  /** The expression of each parameter, as the statement begins with them. */
  parameters: ReadonlyMap<string, string>
}

export const FOLDER = new URL('../../drizzle/questions/', import.meta.url)

export function questionFiles(): QuestionFile[] {
  return readdirSync(FOLDER)
    .sort()
    .map(file => parse(file, readFileSync(new URL(file, FOLDER), 'utf8')))
}

export function questionNamed(name: string): QuestionFile {
  const file = questionFiles().find(each => each.name === name)
  if (!file) throw new RangeError(`there is no question ${name}`)
  return file
}

const BLOCK = /^WITH parameters AS \(SELECT (.*)\)(?=,?$)/m

function parse(file: string, sql: string): QuestionFile {
  const [first = '', ...lines] = sql.split('\n')
  const explained = lines
    .filter(line => line.startsWith('--   '))
    .flatMap(line => (/^-- {3}([\w, ]+?) {2,}\S/.exec(line)?.[1] ?? '').split(', '))
  return {
    name: file.replace(/\.sql$/, ''),
    sql,
    question: first.replace(/^-- /, ''),
    explained,
    parameters: parametersOf(sql),
  }
}

function parametersOf(sql: string): Map<string, string> {
  const [, block = ''] = BLOCK.exec(sql) ?? []
  const items = [...block.matchAll(/(\S.*?) AS (\w+)(?:, |$)/g)]
  return new Map(items.map(([, expression = '', name = '']) => [name, expression]))
}

/** The statement with other parameters, as a person would edit it. */
export function withParameters(
  { name, sql, parameters }: QuestionFile,
  others: Readonly<Record<string, string>>,
): string {
  const unknown = Object.keys(others).filter(other => !parameters.has(other))
  if (unknown.length > 0) throw new RangeError(`${name} has no parameter ${unknown.join(', ')}`)
  const items = [...parameters].map(([parameter, given]) => `${others[parameter] ?? given} AS ${parameter}`)
  return sql.replace(BLOCK, () => `WITH parameters AS (SELECT ${items.join(', ')})`)
}
