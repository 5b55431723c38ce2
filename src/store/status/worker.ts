import { type CountedStatus, readOverview } from './overview.ts'
import { readStatus } from './status.ts'
import { answerOnce } from './thread.ts'

/** The program of the thread that counts the rows of a large warehouse. */
answerOnce((db, now): CountedStatus => ({ rows: readStatus(db), overview: readOverview(db, now) }))
