import type { Prepare } from '../database/sqlite-types.ts'
import { RECORDS, SET_TWO_WAY } from './conversations.ts'
import { createDerivedRows, type Deriving, msOf, rowsBy, rowsFor } from './derivation.ts'
import { mailQuestions, type ThreadMail } from './mail-questions.ts'
import type { Side } from './sides.ts'

/** E-mails that share a thread in any of their copies, and their questions and answers. */

interface Mail {
  number: number
  id: string
  happenedAt: string | null
  side: Side | null
  isGroup: number | null
  isExternal: number | null
  thread: number | null
}

const MAILS = `SELECT c._id AS number, c.conversation_id AS id, c.happened_at AS happenedAt, c.side, c.is_group_email AS isGroup,
    c.is_external AS isExternal, c._thread AS thread
  FROM json_each(:keys) k CROSS JOIN conversations c ON c._id = k.value WHERE c.kind = 'mail'`
const MATES = `SELECT c._id FROM json_each(:keys) k CROSS JOIN conversations c ON c._thread = k.value`

/** Follows e-mails whose threads, sides, times or people may have changed. */
export function createThreads({ prepare, waiting, time, replyLimitDays }: Deriving) {
  const questions = createDerivedRows(prepare, {
    table: '_mail_questions',
    columns: ['asked', 'last_asked', 'answered', 'work_hours', 'is_counted'],
    key: ['asked'],
    scope: 'asked',
  })
  const connected = createConnected(prepare)
  const mates = prepare<number>(MATES).pluck()
  const setThread = prepare('UPDATE conversations SET _thread = ? WHERE _id = ?')
  const setTwoWay = prepare(SET_TWO_WAY)
  const workHours = (from: number, to: number) => (time.workHoursTo(to) ?? 0) - (time.workHoursTo(from) ?? 0)

  return (numbers: readonly number[]) => {
    const begun = rowsFor<Mail>(prepare, MAILS, numbers)
    const before = [...new Set(begun.flatMap(({ thread }) => thread ?? []))]
    const conversations = connected([...numbers, ...mates.all({ keys: JSON.stringify(before) })])
    const mails = rowsBy(rowsFor<Mail>(prepare, MAILS, conversations.flat()), ({ number }) => number)
    const met: number[] = []
    const rows = conversations.flatMap(members => {
      const own = members.flatMap(number => mails.get(number) ?? [])
      const thread = Math.min(...own.map(({ number }) => number))
      for (const mail of own) if (mail.thread !== thread) setThread.run(thread, mail.number)
      const found = mailQuestions(
        own.flatMap(mail => threadMail(mail, time) ?? []),
        replyLimitDays,
      )
      const answers = new Set(
        found.flatMap(({ asked, answered }) =>
          answered && !answered.isGroup && !asked.isGroup ? [answered.id] : [],
        ),
      )
      for (const { number } of own)
        if (setTwoWay.run(number, answers.has(number) ? 1 : 0).changes > 0) met.push(number)
      return found.map(({ asked, lastAsked, answered, isCounted }) => ({
        asked: asked.id,
        last_asked: lastAsked.id,
        answered: answered?.id ?? null,
        work_hours: answered ? workHours(asked.at, answered.at) : null,
        is_counted: isCounted ? 1 : 0,
      }))
    })
    waiting.addFrom('record', RECORDS, met)
    questions.replace([...mails.keys()], rows)
    waiting.done('thread', [...mails.keys()])
  }
}

/** Undefined for an e-mail that neither asks nor answers. */
function threadMail(
  { number, id, happenedAt, side, isGroup, isExternal }: Mail,
  time: Deriving['time'],
): ThreadMail | undefined {
  const at = msOf(happenedAt)
  const day = at === undefined ? undefined : time.dayOf(at)
  if (at === undefined || !day || (side !== 'ours' && side !== 'theirs')) return undefined
  const is = { isGroup: isGroup === 1, isInternal: isExternal === 0 }
  return { id: number, key: id, at, day: day.day_number, side, ...is }
}

const THREADS = `SELECT DISTINCT c._id, k.thread_id FROM json_each(:keys) j
  CROSS JOIN conversations c ON c._id = j.value AND c.kind = 'mail'
  CROSS JOIN message_copies k ON k.mail_id = c.conversation_id WHERE k._deleted_at IS NULL AND k.thread_id <> ''`
const MAILS_OF_THREADS = `SELECT DISTINCT k.thread_id, c._id FROM json_each(:keys) j CROSS JOIN message_copies k ON k.thread_id = j.value
  CROSS JOIN conversations c ON c.kind = 'mail' AND c.conversation_id = k.mail_id WHERE k._deleted_at IS NULL`

/**
 * Returns a function that finds all e-mails that threads connect to the given ones, one list for each connected group.
 */
function createConnected(prepare: Prepare): (numbers: readonly number[]) => number[][] {
  const add = <Key extends string | number, Value>(
    to: Map<Key, Value[]>,
    sql: string,
    keys: Iterable<Key>,
  ) => {
    const known = [...new Set(keys)].filter(key => !to.has(key))
    for (const key of known) to.set(key, [])
    const pairs = prepare<[Key, Value]>(sql)
      .raw()
      .all({ keys: JSON.stringify(known) })
    for (const [key, value] of pairs) to.get(key)?.push(value)
    return pairs.map(([, value]) => value)
  }
  return numbers => {
    const threadsOf = new Map<number, string[]>()
    const mailsOf = new Map<string, number[]>()
    for (let mails = numbers; mails.length > 0; )
      mails = add(mailsOf, MAILS_OF_THREADS, add(threadsOf, THREADS, mails))
    const seen = new Set<number>()
    return numbers.flatMap(first => {
      if (seen.has(first)) return []
      const members = new Set([first])
      for (const number of members)
        for (const thread of threadsOf.get(number) ?? []) {
          for (const mail of mailsOf.get(thread) ?? []) members.add(mail)
          mailsOf.delete(thread)
        }
      for (const number of members) seen.add(number)
      return [[...members]]
    })
  }
}
