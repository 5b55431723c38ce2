import { type Question, questionFile, readQuestions } from '../../dictionary/questions.ts'

/** A choice of the questions that come with parley, about different parts of the warehouse. */
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
  /** The file with the statement, which the SQLite shell runs from version 3.38 on. */
  file: string
}

export function demoQuestions(): DemoQuestion[] {
  const all = readQuestions()
  return NAMES.flatMap(name => {
    const found = all.find(each => each.name === name)
    return found ? [{ question: found.question, sql: found.sql, file: questionFile(name) }] : []
  })
}
