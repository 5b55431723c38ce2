import { answerOnce } from '../store/status/thread.ts'
import { readReport } from './read-report.ts'
import { reportHtml } from './report-html.ts'

/** The program of the thread that makes the report of the status server. */
answerOnce((db, now) => reportHtml(readReport(db, now)))
