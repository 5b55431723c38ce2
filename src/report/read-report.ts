import { isoInstant } from '../base/clock.ts'
import { errorCode } from '../base/errors.ts'
import { readQuestions } from '../dictionary/questions.ts'
import { completeSentence } from '../health/completeness.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { onlyRow } from '../store/database/statements.ts'
import { workspaceOf } from '../store/file/workspace.ts'
import { appliedMigrations, newestMigration } from '../store/migrations/journal.ts'
import { foreignReportObjects, reportTablesIn } from '../store/reporting/derived-tables.ts'
import { type ReportGuess, readGuesses } from '../store/reporting/guessed-settings.ts'
import { reportProblems } from '../store/reporting/report-settings.ts'
import { waitingKeys } from '../store/reporting/waiting-keys.ts'
import { inOneRead, isWarehouse, noWarehouseError, readCompleteness } from '../store/status/status.ts'
import { META, readMeta } from '../store/sync/meta.ts'
import { REPORT_SECTIONS, type ReportFacts, type ReportRow, type SectionPlan } from './sections.ts'

/** What `parley report --json` prints. All figures are read in one transaction, so they are of one instant. */
export interface ReportFigures {
  /** Null until the first rows are stored. */
  workspace: string | null
  made_at: string
  /** Null while history is loading. */
  complete_as_of: string | null
  /** The same as a sentence, with the resources that it is about and what `sync.since` leaves out. */
  completeness: string
  /** The time zone of the days in the report; null where there are no tables for reports. */
  time_zone: string | null
  tables: ReportTablesState
  /** Guesses at what the settings do not say, each with its reason. */
  guesses: readonly ReportGuess[]
  sections: readonly ReportSection[]
}

/** `up to date`, or why some figures may be missing or late. */
export interface ReportTablesState {
  state: 'up to date' | 'behind' | 'missing'
  /** The number of changes that are not in the tables yet. */
  waiting: number
  /** Sentences for people. */
  notes: readonly string[]
}

export interface ReportSection {
  /** The name of the shipped question. */
  question: string
  /** The question in words. */
  asks: string
  title: string
  /** A sentence with the main figure; null where there is none. */
  sentence: string | null
  /** Why there are no rows, and what to do; null where the question was answered. */
  missing: string | null
  /** What is unknown or not counted. */
  notes: readonly string[]
  /** Names of columns, also where there is no row. */
  columns: readonly string[]
  rows: readonly ReportRow[]
  sql: string
}

/** @param now ms since the epoch @throws StopError (exit status 73) when there is no warehouse */
export function readReport(db: Sqlite, now: number): ReportFigures {
  if (!isWarehouse(db)) throw noWarehouseError(db.name)
  const questions = new Map(readQuestions().map(question => [question.name, question]))
  return inOneRead(db, () => {
    const lacks = absences(db)
    const completeness = readCompleteness(db)
    const facts: ReportFacts = {
      hasDeals: lacks.deals !== undefined || readSetting(db, 'crm.deal.object') !== null,
      currency: lacks.deals === undefined ? readSetting(db, 'reporting.currency') : null,
      since: completeness.since,
    }
    const sections = REPORT_SECTIONS.map(plan => {
      const { question: asks = '', sql = '' } = questions.get(plan.question) ?? {}
      const { question, title, reads } = plan
      return { question, asks, title, ...answer(db, plan, { sql, facts, lacking: lacks[reads] }), sql }
    })
    return {
      workspace: workspaceOf(db)?.id ?? null,
      made_at: isoInstant(now),
      complete_as_of: completeness.complete_as_of,
      completeness: completeSentence(completeness),
      time_zone: lacks.deals === undefined ? readSetting(db, 'reporting.time_zone') : null,
      tables: readTablesState(db, lacks),
      guesses: readGuesses(db),
      sections,
    }
  })
}

type SectionAnswer = Pick<ReportSection, 'sentence' | 'missing' | 'notes' | 'columns' | 'rows'>

const NOTHING = { sentence: null, notes: [], columns: [], rows: [] }

function answer(
  db: Sqlite,
  plan: SectionPlan,
  { sql, facts, lacking }: { sql: string; facts: ReportFacts; lacking: string | undefined },
): SectionAnswer {
  if (lacking !== undefined) return { ...NOTHING, missing: lacking }
  try {
    const statement = db.prepare<unknown[], ReportRow>(sql)
    const columns = statement.columns().map(({ name }) => name)
    const rows = statement.all()
    const [sentence, notes] = [plan.headline(rows, facts), notesOf(db, plan, { rows, facts })]
    return { sentence, missing: null, notes, columns, rows }
  } catch (error) {
    if (errorCode(error) !== 'SQLITE_ERROR') throw error
    return {
      ...NOTHING,
      missing: `The question failed: ${error instanceof Error ? error.message : error}. Run parley backfill, or restart parley daemon, so that this version upgrades the file.`,
    }
  }
}

function notesOf(
  db: Sqlite,
  { notes }: SectionPlan,
  { rows, facts }: { rows: readonly ReportRow[]; facts: ReportFacts },
): string[] {
  return notes.flatMap(note => {
    const [count = 0, of = 0] =
      'sql' in note ? onlyRow(db.prepare<unknown[], number[]>(note.sql).raw()) : [note.count(rows)]
    return count > 0 ? note.says(count, of, facts) : []
  })
}

/** Why the tables for deals or conversations are missing; undefined where they exist. */
type Absences = Readonly<Record<SectionPlan['reads'], string | undefined>>

function absences(db: Sqlite): Absences {
  const present = reportTablesIn(db)
  const foreign = foreignReportObjects(db)
  const why =
    foreign.length > 0
      ? `There are no tables for this in the file, since somebody else has made ${foreign.join(', ')}. Rename these tables or views, then run parley backfill or restart parley daemon.`
      : isOlder(db)
        ? 'The file was written by an older version of parley, without the tables for this. Run parley backfill or parley daemon with this version, which upgrades it.'
        : 'The tables for this are not made yet. A backfill makes them at its end, and the daemon soon after its start.'
  return {
    // The tables are empty from the migration on. The first settings fill the calendar.
    deals: present.deals && hasCalendar(db) ? undefined : why,
    conversations: present.conversations && readMeta(db, META.reportRules) !== undefined ? undefined : why,
  }
}

const hasCalendar = (db: Sqlite): boolean => db.prepare('SELECT 1 FROM calendar').get() !== undefined

const isOlder = (db: Sqlite): boolean => !appliedMigrations(db).includes(newestMigration())

function readTablesState(db: Sqlite, lacks: Absences): ReportTablesState {
  const missing = [...new Set(Object.values(lacks).flatMap(why => why ?? []))]
  const waiting = lacks.conversations === undefined ? waitingKeys(db) : 0
  const problems = lacks.deals === undefined ? reportProblems(db) : []
  const late = `${waiting} changes are not in the tables for reports yet. The daemon follows them every half minute, and a backfill at its end.`
  return {
    state: missing.length > 0 ? 'missing' : waiting > 0 ? 'behind' : 'up to date',
    waiting,
    notes: [
      ...missing,
      ...(waiting > 0 ? [late] : []),
      ...problems.map(problem => `A setting fits nothing: ${problem}`),
    ],
  }
}

const readSetting = (db: Sqlite, name: string): string | null =>
  db
    .prepare<unknown[], string | null>('SELECT value FROM report_settings WHERE name = ?')
    .pluck()
    .get(name) ?? null
