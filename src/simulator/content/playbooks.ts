import type { Draw } from '../base/random.ts'
import { fill } from './mail.ts'

/** Names and questions of playbooks, with the answers found in meetings. */

export const PLAYBOOK_NAMES = [
  'BANT qualification',
  'Discovery checklist',
  'Demo feedback',
  'Renewal risk',
  'Security review',
  'ヒアリングシート',
  'Win/loss "debrief"',
  'Onboarding hand-over',
]

export interface PlaybookQuestion {
  question: string
  answers: readonly string[]
}

export const QUESTIONS: readonly PlaybookQuestion[] = [
  {
    question: 'What budget is available?',
    answers: [
      'About EUR {amount} this year.',
      'Not discussed.',
      '{person} has to approve anything above {amount}.',
    ],
  },
  {
    question: 'Who decides?',
    answers: ['{person} decides together with the {team} team.', 'The board, in {month}.'],
  },
  {
    question: 'What problem is to be solved?',
    answers: [
      'Manual notes cost {count} hours a week and do not reach {system}.',
      'Managers cannot see next steps without asking.',
    ],
  },
  {
    question: 'When should it be in use?',
    answers: ['Before the end of {month}.', 'After a pilot of {weeks} weeks in {city}.'],
  },
  {
    question: 'Which competitors were named?',
    answers: [
      'None.',
      'Two vendors, names not given.',
      'The tool in use today, which the {team} team likes.',
    ],
  },
  {
    question: 'What objections were raised?',
    answers: [
      '{topic}',
      'The price per seat is seen as high for fewer than {count} users.',
      'The works council has to agree.',
    ],
  },
  {
    question: '次のアクションは何ですか？',
    answers: ['{document}を{day}までに送付する。', '{team}チームとのワークショップを設定する。'],
  },
  { question: 'How satisfied is the customer (1–10)?', answers: ['8', '9', '6, because of {topic}'] },
]

export const answerTo = (draw: Draw, question: PlaybookQuestion): string =>
  fill(draw, draw.pick(question.answers))
