import { readCounted } from './overview.ts'
import { answerOnce } from './thread.ts'

/** The program of the thread that counts the rows of a large warehouse. */
answerOnce(readCounted)
