import { ACCOUNT_QUESTIONS } from './account-questions.ts'
import { DEAL_QUESTIONS } from './deal-questions.ts'
import { HISTORY_QUESTIONS } from './history-questions.ts'
import { MAIL_QUESTIONS } from './mail-questions.ts'
import { MEETING_QUESTIONS } from './meeting-questions.ts'
import { PEOPLE_QUESTIONS } from './people-questions.ts'
import { PIPELINE_QUESTIONS } from './pipeline-questions.ts'
import type { Question } from './question.ts'
import { TEAM_QUESTIONS } from './team-questions.ts'

/**
 * Questions of `drizzle/questions` with the right answers: computed without SQL from
 * what the API publishes. The rules of `question.ts` hold for all of them.
 */
export const QUESTIONS: readonly Question[] = [
  ...PIPELINE_QUESTIONS,
  ...DEAL_QUESTIONS,
  ...HISTORY_QUESTIONS,
  ...MAIL_QUESTIONS,
  ...ACCOUNT_QUESTIONS,
  ...PEOPLE_QUESTIONS,
  ...TEAM_QUESTIONS,
  ...MEETING_QUESTIONS,
]
