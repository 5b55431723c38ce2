import type { World } from './world-rows.ts'

/** Numbers are rounded: money to cents, hours and days to two digits, shares to four. */
export type AnswerRow = Readonly<Record<string, string | number | null>>

export interface Question {
  /** In kebab-case. A question that comes with parley has that of its file in `drizzle/questions`. */
  name: string
  /** What exactly counts, so that two people count the same. */
  meaning: string
  /** The columns that tell rows apart. */
  key: readonly string[]
  columns: readonly string[]
  /** SQL in place of the file's own parameters, where these find nothing or prove too little in this workspace. */
  parameters?: Readonly<Record<string, string>>
  /** The rows in the order of the answer. */
  answer(world: World): readonly AnswerRow[]
  /** The answer of a count in a hurry, and what it overlooks. */
  trap: { overlooks: string; answer(world: World): readonly AnswerRow[] }
}

/** Rules that hold for all questions. */
export const RULES = `Days, weeks and quarters are local, in Asia/Tokyo. Today is the local day of the last read. A window of N days has
today and the N - 1 days before it. Only rows that the API publishes at the last read count. Amounts are converted with the rates of the
settings. A deal without an amount, or in a currency without a rate, adds nothing to a sum and counts as unknown.

A deal is open unless the CRM says that it is closed. A closed deal is won when the probability of its stage is certainty, lost when it
is 0, and unknown otherwise. The probabilities of a pipeline are per cent when one of its stages has more than 1. A deleted stage keeps
its last known values. A deal was closed on the local day on which parley observed that it became closed; if parley did not observe it,
on the close date in the CRM.

Ours is every address of a current member, of a former member where the address is still known, and every address at the domain of a
member, except domains of free mail. An address at a partner's domain is a partner's. All other addresses are outside. Neither the type
of a meeting nor its flags for internal attendees are used. A person is a contact of the CRM with both of its addresses, or else an
address. An address that is no contact's belongs to the contact that the e-mail or meeting names, if any. A person's company is that of
the contact, or else the company with exactly the domain of the address. A customer is a person outside who is a contact or has a
company.

An e-mail counts once, with all its copies, at the time of its earliest copy. A conversation has the e-mails that share a thread in any
of their copies; at the same instant, an e-mail from another side comes before one from us. A meeting counts when it has begun and
can be read now. E-mails and meetings belong to a deal or a company when an activity of them, or of any copy, links to it, directly or
derived.

A member who is not on the list of members has left, even if the name is not known any more. Where nothing else decides, rows are in
the order of their ids. A missing value comes last.`
