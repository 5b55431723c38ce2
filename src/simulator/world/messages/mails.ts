import type { Scene } from '../../base/scene.ts'
import type { Layout } from './layout.ts'

/** The e-mail that a message is a copy of. */
export interface MailCopy {
  thread: number
  mail: number
  copy: number
}

/** Knows which e-mail each message is a copy of. */
export interface Mails {
  of(message: number): MailCopy
  /** The messages of a thread; none for an unknown thread. */
  inThread(thread: number): number[]
  /** Appends a message: the first copy of a new e-mail. */
  addMail(choice: number): void
  /** Appends a message: another copy of the e-mail of an existing message. */
  addCopy(of: number): void
}

export function createMails({ isTidy, sizes }: Scene, layout: Layout): Mails {
  const { thread, mail, copy, threadStart } = layout
  const baseCount = sizes.messages
  const added: MailCopy[] = []
  const addedByThread = new Map<number, number[]>()

  const of = (message: number): MailCopy =>
    message < baseCount
      ? { thread: thread[message] ?? 0, mail: mail[message] ?? 0, copy: copy[message] ?? 0 }
      : (added[message - baseCount] ?? { thread: 0, mail: 0, copy: 0 })

  const add = (mailCopy: MailCopy): void => {
    const message = baseCount + added.length
    added.push(mailCopy)
    const list = addedByThread.get(mailCopy.thread)
    if (list) list.push(message)
    else addedByThread.set(mailCopy.thread, [message])
  }

  return {
    of,
    inThread: thread => {
      if (thread < 0 || thread >= threadStart.length) return []
      const first = threadStart[thread] ?? baseCount
      const end = threadStart[thread + 1] ?? baseCount
      const base = Array.from({ length: Math.max(0, end - first) }, (_, n) => first + n)
      return [...base, ...(addedByThread.get(thread) ?? [])]
    },
    addMail: choice => {
      // People mostly answer e-mails of the last days.
      const answered = isTidy && choice % 6 > 0 ? added.at(-1 - ((choice >>> 3) % 30)) : undefined
      const thread = answered?.thread ?? choice % Math.max(1, threadStart.length)
      add({ thread, mail: 1_000 + added.length, copy: 0 })
    },
    addCopy: original => add({ ...of(original), copy: 100 + added.length }),
  }
}
