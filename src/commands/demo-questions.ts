import { type Question, questionFile, readQuestions } from '../dictionary/questions.ts'

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

export interface DemoQuestion extends Pick<Question, 'question' | 'sql'> {
  /** The file with the statement, which any SQLite shell from 3.38 on runs as it is. */
  file: string
}

/** What an analyst might ask first. */
export function demoQuestions(): DemoQuestion[] {
  const all = readQuestions()
  return NAMES.flatMap(name => {
    const found = all.find(each => each.name === name)
    return found ? [{ question: found.question, sql: found.sql, file: questionFile(name) }] : []
  })
}
