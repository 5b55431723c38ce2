import type { Draw } from '../base/random.ts'
import { fill } from './mail.ts'

/** Titles, spoken lines and overviews of meetings. */

const TITLES = [
  'Discovery call',
  'Product demo',
  'Technical deep dive',
  'Contract review',
  'Quarterly business review',
  'Kick-off',
  'Renewal discussion',
  'Security review',
  'Pilot check-in',
  'Pricing and packaging',
  '初回ヒアリング',
  '導入支援ミーティング',
  'Weekly sync 🤝',
  'Executive alignment',
]
const LINES = [
  'Thanks for joining, everyone. Shall we start with a short round of introductions?',
  'Before the demo I would like to understand how your team handles calls today.',
  'Right now every account manager writes notes by hand, and half of them never reach {system}.',
  'We lose about {count} hours a week to that, at least in the {team} team.',
  'What would have to be true for you to call the pilot a success after {weeks} weeks?',
  'If managers can see the next steps without asking, that would already be worth it.',
  'Let me share my screen. This is the timeline of one deal, with every meeting and mail in order.',
  'Can we restrict who sees the recordings? Our works council is strict about that.',
  'Yes, access follows the teams, and private meetings stay with their attendees.',
  'How does the price change if we begin with {count} seats instead of two hundred?',
  'The list price stays the same, but we can start with a smaller package and grow in {month}.',
  'I have to be honest, {topic} is the point that decides it for us.',
  'That is fair. I will bring {person} to the next call to go through it in detail.',
  'We are also looking at two other vendors, so a decision will not come before {month}.',
  'Who else needs to be involved on your side to sign the {document}?',
  '{person} signs, but procurement has to confirm the budget of {amount} first.',
  'Could you send the {document} by {day}? Then I can forward it right away.',
  'Of course. I will send a summary and the {document} this afternoon.',
  'For {city} we would need the interface in Japanese as well.',
  'はい、日本語の文字起こしにも対応しております。',
  '価格についてもう少し詳しく教えていただけますか。',
  '来週{day}までに社内で確認して、ご連絡いたします。',
  'Great. So the next step is a workshop with the {team} team on {day}.',
  'That works for us. Thank you, this was very helpful.',
  'One last question: what happens to our data if we stop after the first year?',
  'You can export everything, and it is erased {count} days after the end of the contract.',
]
const CHAPTERS = [
  'Introductions',
  'Current process',
  'Demo',
  'Pricing',
  'Security and data',
  'Objections',
  'Next steps',
  '今後の予定',
]
const CHAPTER_ITEMS = [
  'The team loses about {count} hours a week to manual notes.',
  'Budget of {amount} is available from {month}, subject to approval by {person}.',
  '{topic} is the main criterion for the decision.',
  'The pilot starts with {count} users in {city}.',
  'The {document} is to be sent by {day}.',
  'Two other vendors are being evaluated; decision expected in {month}.',
]
const ACTIONS = [
  'Send the {document}',
  'Schedule a workshop with the {team} team',
  'Clarify {topic}',
  'Prepare a quote for {count} seats',
  'Invite {person} to the next call',
  '見積書を送付する',
  'Set up the trial for {city}',
]

/** Speakers who are on no list of attendees. */
export const OTHER_SPEAKERS = ['Meeting room Osaka', '+81 3 5550 0142', 'Guest 1'] as const

export const meetingTitle = (draw: Draw, company: string): string => `${draw.pick(TITLES)} – ${company}`
export const spokenLine = (draw: Draw): string => fill(draw, draw.pick(LINES))
export const chapterTitle = (draw: Draw): string => draw.pick(CHAPTERS)
export const chapterItem = (draw: Draw): string => fill(draw, draw.pick(CHAPTER_ITEMS))
export const actionText = (draw: Draw): string => fill(draw, draw.pick(ACTIONS))
