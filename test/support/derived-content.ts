import { rmSync } from 'node:fs'
import { loadSettings } from '../../src/config/load-settings.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { statementCache } from '../../src/store/database/statements.ts'
import { reportsOf } from './reports-of.ts'

/** What the tables for reports derive from conversations, without the internal numbers, which depend on the order of writing. */

const DERIVED = {
  conversations: `SELECT kind, conversation_id, happened_at, day, local_hour, title, person_id, side, is_external, is_linked, is_group_email,
      is_readable, minutes, _is_two_way,
      (SELECT min(m.conversation_id) FROM conversations m WHERE m._thread = c._thread) AS thread
    FROM conversations c ORDER BY 1, 2`,
  people: `SELECT person_id, party_id, name, domain, side, member_id, is_member_now, contact_id, first_seen_day, last_seen_day
    FROM people ORDER BY 1`,
  parties: 'SELECT * FROM parties ORDER BY 1',
  taking: 'SELECT * FROM conversation_people ORDER BY 1, 2, 4, 11, 6, 14',
  pairs: 'SELECT * FROM record_conversations ORDER BY 1, 2, 3, 4',
  records: `SELECT object, record_id, meetings, mails, mails_in, mails_out, meetings_without_derived, mails_without_derived,
      mails_in_without_derived, mails_out_without_derived, engaged_people, first_meeting_day, last_day, last_theirs_day, last_two_way_day
    FROM record_activity ORDER BY 1, 2`,
  questions: `SELECT asked_mail_id, thread_id, asked_at, last_asked_at, answered_mail_id, answered_at, day, person_id, side, is_counted,
      CASE WHEN answered_at IS NOT NULL THEN work_hours END AS worked FROM mail_questions ORDER BY 1`,
  waiting: 'SELECT * FROM _waiting_keys',
  internal: `SELECT (SELECT count(*) FROM _conversation_people) AS people, (SELECT count(*) FROM _record_conversations) AS pairs,
      (SELECT count(*) FROM _mail_questions) AS questions, (SELECT count(*) FROM _contact_addresses) AS contacts,
      (SELECT count(*) FROM _company_domains) AS companies`,
}

/** The rows of each table, in an order that only their content decides. */
export const derivedContent = (db: Sqlite): Record<string, unknown[]> =>
  Object.fromEntries(Object.entries(DERIVED).map(([of, sql]) => [of, db.prepare(sql).all()]))

const TABLES = [
  ...['conversations', 'people', 'parties', 'record_activity', '_conversation_people'],
  ...['_record_conversations', '_mail_questions', '_contact_addresses', '_company_domains'],
]

/** The next update then derives all rows. */
export function forgetDerived(db: Sqlite): void {
  db.exec("DELETE FROM sync_meta WHERE key = 'report_rules'")
  for (const table of TABLES) db.exec(`DELETE FROM ${table}`)
}

export interface Followed {
  /** The file, which stays as it is. */
  database: string
  env: Readonly<Record<string, string | undefined>>
  now(): number
}

/** Reads a copy of a warehouse whose tables for reports have followed all changes. */
export async function withFollowedCopy<T>(
  { database, env, now }: Followed,
  read: (db: Sqlite, update: () => Promise<unknown>) => T | Promise<T>,
): Promise<T> {
  const copy = `${database}-followed`
  copyTo(copy, database)
  const db = openSqlite(copy)
  try {
    const reports = reportsOf({
      ...{ db, prepare: statementCache(db), now },
      attempt: work => ({ value: db.transaction(work).immediate() }),
    })
    const config = loadSettings({ flags: {}, env, cwd: '/', requireApi: false }).settings
    const update = () => reports.update(config)
    await update()
    return await read(db, update)
  } finally {
    db.close()
    for (const end of ['', '-wal', '-shm']) rmSync(`${copy}${end}`, { force: true })
  }
}

function copyTo(copy: string, database: string): void {
  const source = openSqlite(database, { readonly: true, fileMustExist: true })
  try {
    source.prepare('VACUUM INTO ?').run(copy)
  } finally {
    source.close()
  }
}
