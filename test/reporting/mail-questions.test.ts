import { describe, expect, test } from 'vitest'
import { mailQuestions, type ThreadMail } from '../../src/store/reporting/mail-questions.ts'

/**
 * E-mails as `side hour`, with `g` for one to a group and `i` for an internal one: `t1 o3i t5g` is theirs at 1, ours
 * among us at 3, theirs to a group at 5.
 */
function mailsIn(text: string): ThreadMail[] {
  return text.split(' ').map((mail, id) => {
    const [, side, hour, kind] = /^([ot])(\d+)([gi]?)$/.exec(mail) ?? []
    const at = Number(hour) * 3_600_000
    return {
      ...{ id, key: mail, at, day: Math.floor(Number(hour) / 24) },
      ...{ side: side === 'o' ? 'ours' : 'theirs', isGroup: kind === 'g', isInternal: kind === 'i' },
    }
  })
}

/** Questions as `asked..last>answer`, with `!` where they are not counted, in alphabetical order. */
const questionsIn = (text: string, limit = 30) =>
  mailQuestions(mailsIn(text), limit)
    .map(
      ({ asked, lastAsked, answered, isCounted }) =>
        `${asked.key}..${lastAsked.key}>${answered?.key ?? ''}${isCounted ? '' : '!'}`,
    )
    .sort()

describe('a question', () => {
  test.each([
    ['waits for an answer', 't1', ['t1..t1>']],
    ['is answered by the first e-mail of the other side', 't1 o3 o5', ['o3..o5>', 't1..t1>o3']],
    ['is one run of e-mails', 't1 t2 t3 o4', ['o4..o4>', 't1..t3>o4']],
    ['is ours too', 'o1 t2 o3', ['o1..o1>t2', 'o3..o3>', 't2..t2>o3']],
    ['is not answered by an e-mail of the same instant', 't1 o1 o2', ['o1..o2>', 't1..t1>o2']],
    ['begins with the first e-mail that is not to a group', 't1g t2 o3', ['o3..o3>', 't2..t2>o3']],
    ['is not counted when it is only to a group', 't1g o3', ['o3..o3>', 't1g..t1g>o3!']],
    ['is answered by an e-mail to a group', 't1 o2g', ['o2g..o2g>!', 't1..t1>o2g']],
    ['is no internal e-mail', 'o1i t2 o3', ['o3..o3>', 't2..t2>o3']],
    ['does not end with an internal e-mail', 'o1 o2i t3', ['o1..o1>t3', 't3..t3>']],
    ['is answered by an internal e-mail', 't1 o2i', ['t1..t1>o2i']],
    ['is read in the order of time', 'o3 t1', ['o3..o3>', 't1..t1>o3']],
  ])('%s', (_, mails, questions) => {
    expect(questionsIn(mails)).toEqual(questions)
  })

  test.each([
    ['t1 o47', ['o47..o47>', 't1..t1>o47']],
    ['t1 o48', ['o48..o48>', 't1..t1>o48!']],
  ])('is not counted when the answer takes up an old conversation: %s', (mails, questions) => {
    expect(questionsIn(mails, 1)).toEqual(questions)
  })
})
