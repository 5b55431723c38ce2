import type { Draw } from '../base/random.ts'

/** Subjects and bodies of e-mails about selling software to companies. */

const TOPICS = [
  'Pilot for the service team',
  'Renewal of the annual licence',
  'Security questionnaire',
  'Pricing for 120 seats',
  'Kick-off agenda',
  'Data residency',
  'Single sign-on setup',
  'Integration with the data warehouse',
  'Feedback from the demo',
  'Order form',
  'Onboarding plan',
  'Contract redlines',
  'Quarterly review',
  'Questions from procurement',
  'Access for the finance team',
  'Migration from the old tool',
  'Rollout to the Lyon site',
  'Reference call',
  'Support levels',
  'Invoice 2026-0418',
  'Workshop next week',
  'Proof of concept: results 🎉',
  'Budget approval',
  'お見積りの件',
  '次回お打ち合わせについて',
  '契約書のご確認',
  '導入スケジュールのご相談',
  'トライアル環境のご案内',
  'Re-scoping "phase 2"',
  'Next steps → legal',
  'Travel plans ✈️ for the on-site',
]

export function mailSubject(draw: Draw): string {
  return draw.pick(TOPICS)
}

const OPENINGS = [
  'Thank you for taking the time on {day}.',
  'I hope your week is going well.',
  'Following up on our call on {day}.',
  'Thanks for the quick reply.',
  'Great to meet the wider team on {day}!',
  'As promised, here is the summary.',
  'Sorry for the delay, the {team} team needed a little longer than planned.',
  'A short update from our side.',
  'I spoke with {person} this morning and wanted to share where we are.',
  'Please find the details below.',
]
const SENTENCES = [
  'We reviewed the proposal with {person} and the {team} team, and the overall direction is right.',
  'The main open point is {topic}; could you send us the latest version before {day}?',
  'Our budget for this year is {amount}, and anything above that needs the approval of {person}.',
  'For the pilot we would start with {count} users in {city} and extend to {count} more after {weeks} weeks.',
  'Legal has asked for two changes in section {number}.{number}, mostly about liability and notice periods.',
  'The integration with {system} took {number} days in the test environment, which is less than we expected.',
  'Could we move the meeting to {day} at {hour}:30? {person} is travelling until then.',
  'I have attached the {document} together with the notes from the workshop.',
  'Regarding {topic}, the answer from {person} is that it will be part of the {month} release.',
  'We currently handle about {amount} calls a month, with a peak in {month}.',
  'The price per seat stays at EUR {number}.50 as long as the contract runs for {weeks} months.',
  'One of our concerns is adoption: the last tool we bought was used by fewer than {number} people after a quarter.',
  'It would help to have a reference customer in {industry} with a similar size.',
  'Our security team needs the completed {document} and the latest penetration test report.',
  'The export to {system} still fails for records that were created before {month}; we have opened ticket #{amount}.',
  'Please add {person} to the thread, since the {team} team will own the rollout.',
  'If everything goes to plan we can sign by the end of {month}.',
  'Let me know whether {day} works for the next check-in, otherwise I will propose another slot.',
  'In short: scope is agreed, {topic} is in progress, and the {document} is with procurement.',
  'The trial environment will remain available until {month} {number}, so there is no rush on your side.',
  'We compared three vendors, and yours was the only one that covered {topic} without custom work.',
  '{person} asked whether the recordings can be stored in {city} rather than in the default region.',
  'On the commercial side we would prefer one invoice per quarter, payable within {count} days.',
  'The dashboards were well received, especially the view by region and the weekly summary for managers.',
  'Two colleagues in {city} could not log in this morning; resetting single sign-on solved it for one of them.',
  'I have updated the forecast to {amount} and moved the expected close to {month}.',
  'There is some resistance in the {team} team, so an additional training session would be welcome.',
  'Just to confirm, the {document} covers all subsidiaries, including the one in {city}?',
  'We noticed that the transcript mixes up speakers when more than {number} people join from one room.',
  'Our works council has to agree to the recording policy, which usually takes about {weeks} weeks.',
]
const SENTENCES_JA = [
  '先日はお打ち合わせのお時間をいただき、誠にありがとうございました。',
  'ご依頼いただきました{document}を添付いたしますので、ご確認のほどよろしくお願いいたします。',
  '社内で検討した結果、まずは{count}名で試験導入を進めたいと考えております。',
  '{month}末までに契約手続きを完了できるよう、法務部と調整しております。',
  'お見積り金額{amount}円につきまして、{weeks}か月契約の場合の割引をご相談させてください。',
  '{system}との連携について、技術的な制約がございましたらお知らせください。',
  '次回のお打ち合わせは{day}の{hour}時からでいかがでしょうか。',
  'セキュリティチェックシートの回答は、担当部署に確認のうえ改めてご連絡いたします。',
]
const CLOSINGS = [
  'Best regards,',
  'Kind regards,',
  'Many thanks,',
  'Thanks and talk soon,',
  'よろしくお願いいたします。',
  'Cheers,',
]

const SLOTS: Record<string, readonly string[]> = {
  day: [
    'Monday',
    'Tuesday',
    'Wednesday',
    'Thursday',
    'Friday',
    'March 14',
    'the 21st',
    'next Tuesday',
    'April 3',
  ],
  person: [
    'Ms Keller',
    'Jonas',
    'our CFO',
    'Dr Patel',
    'Priya',
    'Mr Tanaka',
    'Elena',
    'the new head of sales',
    'Hugo',
  ],
  team: ['finance', 'service', 'procurement', 'sales operations', 'IT', 'customer success', 'legal', 'data'],
  topic: [
    'data residency',
    'the support level',
    'user provisioning',
    'the price for extra seats',
    'the audit log',
    'call recording consent',
    'the Japanese language model',
    'the migration of old recordings',
  ],
  city: ['Lyon', 'Osaka', 'Hamburg', 'Toronto', 'Madrid', 'Dublin', 'Fukuoka', 'Warsaw', 'Austin'],
  system: [
    'the CRM',
    'our ticket system',
    'the data warehouse',
    'the telephone system',
    'the ERP',
    'the identity provider',
  ],
  document: [
    'order form',
    'data processing agreement',
    'security questionnaire',
    'project plan',
    'statement of work',
    'price list',
  ],
  month: ['January', 'February', 'March', 'April', 'May', 'June', 'September', 'October', 'November'],
  industry: ['logistics', 'insurance', 'retail', 'manufacturing', 'health care', 'travel'],
}

const SLOT = /\{(\w+)\}/g
const NUMBERS: Record<string, [number, number]> = {
  amount: [12_000, 480_000],
  count: [12, 90],
  weeks: [2, 24],
  number: [3, 28],
  hour: [9, 8],
}

/** Replaces `{slot}` with a word or a number. */
export function fill(draw: Draw, template: string): string {
  return template.replace(SLOT, (_, slot: string, offset: number) => {
    const range = NUMBERS[slot]
    if (range) return String(range[0] + draw.below(range[1]))
    const word = draw.pick(SLOTS[slot] ?? [slot])
    return offset === 0 ? word.charAt(0).toUpperCase() + word.slice(1) : word
  })
}

function paragraph(draw: Draw, isJapanese: boolean): string {
  const count = 1 + draw.below(4)
  const list = isJapanese ? SENTENCES_JA : SENTENCES
  return Array.from({ length: count }, () => fill(draw, draw.pick(list))).join(isJapanese ? '' : ' ')
}

export interface MailParties {
  from: string
  to: string
  company: string
}

/** Lengths: mostly 0.4 to 2 kB; one in four with a quoted reply; one in eighty with a long history of up to 50 kB. */
export function mailBody(draw: Draw, { from, to, company }: MailParties): string {
  const isJapanese = draw.chance(0.15)
  const parts = [isJapanese ? `${to} 様` : `Hi ${to.split(' ')[0]},`]
  if (!isJapanese) parts.push(fill(draw, draw.pick(OPENINGS)))
  const paragraphs = 2 + draw.below(4)
  for (let i = 0; i < paragraphs; i++) parts.push(paragraph(draw, isJapanese))
  if (draw.chance(0.2)) {
    parts.push(
      Array.from({ length: 3 + draw.below(3) }, () => `- ${fill(draw, draw.pick(SENTENCES))}`).join('\n'),
    )
  }
  parts.push(`${draw.pick(CLOSINGS)}\n${from}\n${company}\n+49 40 ${1_000_000 + draw.below(8_999_999)}`)
  if (draw.chance(0.25)) parts.push(quoted(draw, to, 1))
  if (draw.chance(0.0125)) parts.push(quoted(draw, to, 20 + draw.below(60)))
  return parts.join('\n\n')
}

function quoted(draw: Draw, author: string, mails: number): string {
  const lines: string[] = []
  for (let mail = 0; mail < mails; mail++) {
    lines.push(fill(draw, `On {day}, {month} {count}, 2026 at {hour}:15, ${author} wrote:`))
    const paragraphs = 1 + draw.below(4)
    for (let i = 0; i < paragraphs; i++) lines.push(`> ${paragraph(draw, false)}`, '>')
  }
  return lines.join('\n')
}
