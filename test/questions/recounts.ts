import type { Recount } from './recount.ts'
import { SYNC_RECOUNTS } from './recount-sync.ts'
import { TALK_RECOUNTS } from './recount-talk.ts'

/** The second count of questions that `first-week` does not answer, by the name of their file. */
export const RECOUNTS: Readonly<Record<string, Recount>> = { ...TALK_RECOUNTS, ...SYNC_RECOUNTS }
