import { createHash } from 'node:crypto'
import { DICTIONARY } from '../../dictionary/dictionary.ts'
import { duckdbSql } from '../../dictionary/duckdb-sql.ts'
import { readQuestions } from '../../dictionary/questions.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { META } from '../sync/meta.ts'
import type { State } from '../sync/resource-state.ts'

/** Rewrites `parley_questions` when the questions of this version differ. Call inside a transaction. */
export function fillQuestions(prepare: Prepare, state: Pick<State, 'meta' | 'setMeta'>): void {
  installed ??= installedQuestions()
  const { questions, digest } = installed
  if (state.meta(META.questions) === digest) return
  prepare('DELETE FROM parley_questions').run()
  const insert = prepare(
    'INSERT INTO parley_questions (name, question, parameters, sql, duckdb_sql) VALUES (?, ?, ?, ?, ?)',
  )
  for (const { name, question, parameters, sql, duckdbSql: forDuckdb } of questions) {
    insert.run(name, question, JSON.stringify(parameters), sql, forDuckdb)
  }
  state.setMeta(META.questions, digest)
}

/** They are the same for every warehouse that this process opens, so only the first one waits for the translations. */
let installed: ReturnType<typeof installedQuestions> | undefined

function installedQuestions() {
  const questions = readQuestions().map(question => ({
    ...question,
    duckdbSql: duckdbSql(question.sql, DICTIONARY),
  }))
  const digest = createHash('sha256').update(JSON.stringify(questions)).digest('hex')
  return { questions, digest }
}
