import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { readInstalled } from '../base/installation.ts'

/**
 * A question that comes with parley: a file in `drizzle/questions`. The file starts with comments, first the question
 * and then the meaning of each parameter. One statement follows, whose first line has the parameters, if there are any.
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
  /** Its SQL expression in the file. */
  value: string
  /** What the parameter means. Several parameters may share one sentence. */
  about: string
}

/** The folder `drizzle` is next to `src` and `dist`, in the package as well as in a clone. */
const FOLDER = new URL('../../drizzle/questions/', import.meta.url)

const ENDING = '.sql'

/** Reads all questions, ordered by name. */
export function readQuestions(): Question[] {
  return readInstalled(fileURLToPath(FOLDER), () => readdirSync(FOLDER))
    .filter(file => file.endsWith(ENDING))
    .sort()
    .map(file => file.slice(0, -ENDING.length))
    .map(name =>
      questionOf(
        name,
        readInstalled(questionFile(name), () => readFileSync(questionFile(name), 'utf8')),
      ),
    )
}

export function questionFile(name: string): string {
  return fileURLToPath(new URL(`${name}${ENDING}`, FOLDER))
}

const PARAMETERS = /^WITH parameters AS \(SELECT (.*)\),?$/m

function questionOf(name: string, sql: string): Question {
  const [first = '', ...lines] = sql.split('\n')
  const meanings = new Map(
    lines.flatMap(line => {
      const [, names = '', about = ''] = /^-- {3}([\w, ]+?) {2,}(\S.*)$/.exec(line) ?? []
      return names.split(', ').map(each => [each, about] as const)
    }),
  )
  const [, block = ''] = PARAMETERS.exec(sql) ?? []
  const parameters =
    block === ''
      ? []
      : block.split(', ').map(column => {
          const [value = '', parameter = ''] = column.split(' AS ')
          return { name: parameter, value, about: meanings.get(parameter) ?? '' }
        })
  return { name, question: first.replace(/^-- /, ''), parameters, sql }
}
