import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Some of the questions that come with parley, each of which takes something from another corner of the warehouse. */
const NAMES = [
  'freshness',
  'open-deals-by-stage',
  'deals-where-a-term-was-said',
  'who-talks-to-whom',
  'external-domains',
  'response-times-by-month',
  'coverage-of-a-month',
] as const

/** In the package and in a clone alike, beside `src` and `dist`. */
const FOLDER = new URL('../../drizzle/questions/', import.meta.url)

export interface DemoQuestion {
  question: string
  /** The file with the statement, which any SQLite shell from 3.38 on runs as it is. */
  file: string
  sql: string
}

/** What an analyst might ask first. */
export function demoQuestions(): DemoQuestion[] {
  return NAMES.map(name => {
    const file = fileURLToPath(new URL(`${name}.sql`, FOLDER))
    const sql = readFileSync(file, 'utf8')
    return { question: sql.slice(0, sql.indexOf('\n')).replace(/^-- /, ''), file, sql }
  })
}
