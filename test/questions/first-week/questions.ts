import { ACCOUNT_QUESTIONS } from './account-questions.ts'
import { DEAL_QUESTIONS } from './deal-questions.ts'
import { MAIL_QUESTIONS } from './mail-questions.ts'
import { PIPELINE_QUESTIONS } from './pipeline-questions.ts'
import type { Question } from './question.ts'
import { TEAM_QUESTIONS } from './team-questions.ts'

/**
 * Twenty questions of a head of revenue operations in the first week, with the right answers: computed without SQL from
 * what the API publishes. The rules of `question.ts` hold for all of them.
 */
export const QUESTIONS: readonly Question[] = [
  ...PIPELINE_QUESTIONS,
  ...DEAL_QUESTIONS,
  ...MAIL_QUESTIONS,
  ...ACCOUNT_QUESTIONS,
  ...TEAM_QUESTIONS,
]
