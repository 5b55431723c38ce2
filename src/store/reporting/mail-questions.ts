import { listsBy } from './derivation.ts'

/** Which e-mails of a conversation wait for an answer, and which answer them. Pure. */

export interface ThreadMail {
  id: number
  /** Message-ID, which decides the order of e-mails of one instant. */
  key: string
  /** In ms since the epoch. */
  at: number
  /** Days since 1970-01-01, in the zone of reports. */
  day: number
  side: 'ours' | 'theirs'
  isGroup: boolean
  /** True when no one of theirs takes part. The e-mail then answers, and asks nothing. */
  isInternal: boolean
}

export interface MailQuestion {
  asked: ThreadMail
  lastAsked: ThreadMail
  /** Undefined while the other side has not answered. */
  answered: ThreadMail | undefined
  /** False when all asking e-mails went to groups, or when the answer comes after more than `replyLimitDays`. */
  isCounted: boolean
}

type Run = Pick<MailQuestion, 'asked' | 'lastAsked'>

/**
 * A question is a run of e-mails of one side until the other side answers. It begins with the first e-mail that is not
 * to a group, else with the first e-mail. Internal e-mails are in no run. An e-mail of the same instant is no answer.
 * @param replyLimitDays an answer after more local days is not counted
 */
export function mailQuestions(mails: readonly ThreadMail[], replyLimitDays: number): MailQuestion[] {
  const inOrder = mails.toSorted((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1))
  const questions: MailQuestion[] = []
  const open: { ours: Run | undefined; theirs: Run | undefined } = { ours: undefined, theirs: undefined }
  const end = (run: Run, answered: ThreadMail | undefined) => {
    const isInTime = answered === undefined || answered.day - run.asked.day <= replyLimitDays
    questions.push({ ...run, answered, isCounted: !run.asked.isGroup && isInTime })
  }
  for (const together of listsBy(inOrder, ({ at }) => at).values()) {
    for (const mail of together) {
      const other = mail.side === 'ours' ? 'theirs' : 'ours'
      const run = open[other]
      if (run && run.asked.at < mail.at) {
        end(run, mail)
        open[other] = undefined
      }
    }
    for (const mail of together) {
      if (mail.isInternal) continue
      const run = open[mail.side]
      const begins = run === undefined || (run.asked.isGroup && !mail.isGroup)
      open[mail.side] = { asked: begins ? mail : run.asked, lastAsked: mail }
    }
  }
  for (const run of [open.ours, open.theirs]) if (run) end(run, undefined)
  return questions
}
