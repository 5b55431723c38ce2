import { CONVERSATION_VIEWS } from '../../dictionary/conversation-tables.ts'
import {
  type DescribedColumn,
  type DescribedTable,
  fullMeaning,
  NEVER_NULL,
  sqlComment,
} from '../../dictionary/described-table.ts'
import { DERIVED_TABLES, FACT_VIEWS, REPORT_VIEWS } from '../../dictionary/report-tables.ts'
import { DEAL_VERSIONS } from '../../dictionary/version-tables.ts'
import { columnNames, hasTable, renameTable } from '../database/existing-tables.ts'
import { quote } from '../database/sql.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { createMeta, META } from '../sync/meta.ts'

/**
 * The derived tables for reports. They are created from their descriptions and dropped when these change, since their
 * rows are computed from other tables. They are not STRICT: declared types such as DATE and BOOLEAN are shown by many
 * clients.
 */

const TYPES: Readonly<Record<DescribedColumn['kind'], string>> = {
  text: 'TEXT',
  json: 'TEXT',
  timestamp: 'TIMESTAMP',
  date: 'DATE',
  boolean: 'BOOLEAN',
  integer: 'INTEGER',
  real: 'REAL',
  any: 'ANY',
}

/**
 * Tables that only parley uses. The numbers in them are the `_id` of `conversations`, `people` and `record_activity`.
 */
const INTERNAL_TABLES = {
  _waiting_keys: `CREATE TABLE \`_waiting_keys\` ( /* Keys of changed rows that the tables for reports have not followed yet. */
	\`kind\` INTEGER NOT NULL /* Kind of key, in the order in which they are followed. */,
	\`key\` ANY NOT NULL /* Key of a changed row, or internal number. */,
	PRIMARY KEY(\`kind\`, \`key\`)
) STRICT, WITHOUT ROWID`,
  _conversation_people: `CREATE TABLE \`_conversation_people\` ( /* Who takes part in a conversation. */
	\`conversation\` INTEGER NOT NULL,
	\`person\` INTEGER NOT NULL /* Or a negative number, for a speaker who is matched to no address. */,
	\`role\` INTEGER NOT NULL,
	\`happened_ms\` INTEGER NOT NULL /* When, in ms since 1970. */,
	\`is_named\` INTEGER NOT NULL,
	\`is_internal\` INTEGER /* What a meeting says. */,
	\`has_said\` INTEGER NOT NULL /* 1 for who wrote or spoke, if only for an unknown share of the time. */,
	\`contact\` INTEGER /* The contact that the API names. */,
	PRIMARY KEY(\`conversation\`, \`person\`, \`role\`)
) STRICT, WITHOUT ROWID`,
  _record_conversations: `CREATE TABLE \`_record_conversations\` ( /* Which CRM record a conversation belongs to, and how. */
	\`record\` INTEGER NOT NULL,
	\`conversation\` INTEGER NOT NULL,
	\`how\` INTEGER NOT NULL,
	PRIMARY KEY(\`record\`, \`conversation\`)
) STRICT, WITHOUT ROWID`,
  _mail_questions: `CREATE TABLE \`_mail_questions\` ( /* E-mails that ask the other side, with those that answer. */
	\`asked\` INTEGER PRIMARY KEY NOT NULL,
	\`last_asked\` INTEGER NOT NULL,
	\`answered\` INTEGER,
	\`work_hours\` REAL /* NULL while it waits. */,
	\`is_counted\` INTEGER NOT NULL
) STRICT`,
  _contact_addresses: `CREATE TABLE \`_contact_addresses\` ( /* Contacts of the CRM, as they were last read for reports. */
	\`contact_id\` TEXT PRIMARY KEY NOT NULL,
	\`address\` TEXT,
	\`name\` TEXT,
	\`company_id\` TEXT
) STRICT, WITHOUT ROWID`,
  _company_domains: `CREATE TABLE \`_company_domains\` ( /* Companies of the CRM, as they were last read for reports. */
	\`company_id\` TEXT PRIMARY KEY NOT NULL,
	\`domain\` TEXT
) STRICT, WITHOUT ROWID`,
} as const

/** Its rows cannot be computed again, so they outlive the tables that are dropped. */
const FORMER_ADDRESSES = '_former_addresses'
const FORMER_ADDRESSES_SQL = `CREATE TABLE \`${FORMER_ADDRESSES}\` ( /* Addresses in conversations that former members had, whose own rows were purged. */
	\`address\` TEXT PRIMARY KEY NOT NULL
) STRICT, WITHOUT ROWID`

const TABLES: ReadonlyMap<string, string> = new Map([
  ...DERIVED_TABLES.map(table => [table.name, tableSql(table)] as const),
  ...Object.entries(INTERNAL_TABLES),
  [FORMER_ADDRESSES, FORMER_ADDRESSES_SQL],
])

/** These tables hold internal numbers of each other, so they are created together. */
const NUMBERED: readonly string[] = [
  ...['people', 'parties', 'conversations', 'record_activity'],
  ...Object.keys(INTERNAL_TABLES),
]

/** The SQL of the numbered tables. When it changes, their rows are computed again. */
export const DERIVED_SQL = NUMBERED.map(name => TABLES.get(name)).join('\n')

/** By index: its table and columns. */
const INDICES = {
  calendar_by_utc_from: 'calendar (utc_from)',
  people_by_party: 'people (party_id)',
  people_by_domain: 'people (domain)',
  people_by_contact: 'people (contact_id) WHERE contact_id IS NOT NULL',
  conversations_by_time: 'conversations (happened_at)',
  conversations_by_thread: 'conversations (_thread) WHERE _thread IS NOT NULL',
  _conversation_people_by_person:
    '_conversation_people (person, happened_ms, is_named, is_internal, contact)',
  _record_conversations_by_conversation: '_record_conversations (conversation)',
  _contact_addresses_by_address: '_contact_addresses (address) WHERE address IS NOT NULL',
  _company_domains_by_domain: '_company_domains (domain) WHERE domain IS NOT NULL',
} as const

/** The tables and views about conversations, then those about deals. The former need the latter. */
const CONVERSATIONS: readonly string[] = [
  ...NUMBERED,
  FORMER_ADDRESSES,
  ...[...FACT_VIEWS, ...CONVERSATION_VIEWS].map(({ name }) => name),
]
const NAMES = [...TABLES.keys(), ...REPORT_VIEWS.map(({ name }) => name)]
const DEALS = NAMES.filter(name => !CONVERSATIONS.includes(name))

/**
 * Creates the tables that are missing or have other columns in this version. The tables about deals are all created or
 * none, and so are those about conversations: none when a foreign table or view has a name.
 */
export function ensureReportTables(db: Sqlite): void {
  const absent = absentReportObjects(db)
  const present = new Map(
    db
      .prepare<unknown[], [string, string]>(
        "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'index')",
      )
      .raw()
      .all(),
  )
  const isOutdated = (name: string) => present.get(name) !== TABLES.get(name)
  const outdated = [...TABLES].filter(
    ([name]) => !absent.has(name) && (NUMBERED.includes(name) ? NUMBERED.some(isOutdated) : isOutdated(name)),
  )
  const indices = Object.entries(INDICES).filter(([, on]) => !absent.has(on.slice(0, on.indexOf(' '))))
  const left = reportObjects(db).own.filter(name => absent.has(name) && CONVERSATIONS.includes(name))
  if (outdated.length === 0 && left.length === 0 && indices.every(([name]) => present.has(name))) return
  const meta = createMeta(sql => db.prepare(sql))
  db.transaction(() => {
    // parley would no longer update these tables, so they would keep purged content.
    for (const name of left) drop(db, name)
    if (left.length > 0) meta.remove(META.reportRules)
    if (present.has('people') && outdated.some(([name]) => name === 'people')) keepFormerAddresses(db)
    for (const [name, sql] of outdated) {
      if (!NUMBERED.includes(name)) replaceTable(db, name, sql)
      else db.exec(`DROP TABLE IF EXISTS ${quote(name)}; ${sql}`)
    }
    for (const [name, on] of indices) db.exec(`CREATE INDEX IF NOT EXISTS ${name} ON ${on}`)
    if (outdated.some(([name]) => NUMBERED.includes(name))) meta.remove(META.reportRules)
    if (outdated.some(([name]) => name === DEAL_VERSIONS.name)) meta.remove(META.dealVersions)
  }).immediate()
}

/** A member may have been purged since `people` was computed. When it is computed again, the other addresses go. */
function keepFormerAddresses(db: Sqlite): void {
  if (!hasTable(db, FORMER_ADDRESSES)) db.exec(FORMER_ADDRESSES_SQL)
  db.exec(
    `INSERT OR IGNORE INTO ${FORMER_ADDRESSES} SELECT person_id FROM people WHERE member_id IS NOT NULL`,
  )
}

/** Whether there are tables about deals, and about conversations. */
export function reportTablesIn(db: Sqlite): { deals: boolean; conversations: boolean } {
  const absent = absentReportObjects(db)
  return {
    deals: hasTable(db, 'calendar') && !absent.has('calendar'),
    conversations: hasTable(db, '_waiting_keys') && !absent.has('conversations'),
  }
}

/** The tables and views that parley does not create, since a foreign table or view has one of the names. */
export function absentReportObjects(db: Sqlite): ReadonlySet<string> {
  const foreign = foreignReportObjects(db)
  if (foreign.length === 0) return new Set()
  const isDeals = foreign.some(name => DEALS.includes(name.toLowerCase()))
  return new Set(isDeals ? NAMES : CONVERSATIONS)
}

/** The new table keeps the old rows: those of a deleted stage or of a purged deal cannot be computed again. */
function replaceTable(db: Sqlite, name: string, sql: string): void {
  const before = `sync_before_${name}`
  const wasThere = hasTable(db, name)
  if (wasThere) renameTable(db, name, before)
  db.exec(sql)
  if (!wasThere) return
  const known = columnNames(db, before)
  const common = [...columnNames(db, name)]
    .filter(column => known.has(column))
    .map(quote)
    .join(', ')
  if (common !== '')
    db.exec(`INSERT OR IGNORE INTO ${quote(name)} (${common}) SELECT ${common} FROM ${quote(before)}`)
  db.exec(`DROP TABLE ${quote(before)}`)
}

function drop(db: Sqlite, name: string): void {
  const type = db
    .prepare<unknown[], string>('SELECT type FROM sqlite_master WHERE name = ?')
    .pluck()
    .get(name)
  if (type === 'view' || type === 'table') db.exec(`DROP ${type} ${quote(name)}`)
}

/**
 * parley's tables and views begin with a comment on what a row is, which SQLite stores with their SQL. An object of the
 * same name that somebody else has made begins in another way, also if parley once had an object of this name.
 */
const IS_OWN = /^CREATE (?:TABLE `\w+` \(|VIEW "\w+") \/\* /

/** The tables and views that have names of those for reports: those that parley created, and foreign ones. */
function reportObjects(db: Sqlite): { own: readonly string[]; foreign: readonly string[] } {
  const objects = db
    .prepare<unknown[], [name: string, sql: string]>(
      `SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view')
         AND lower(name) IN (SELECT value FROM json_each(?)) ORDER BY name`,
    )
    .raw()
    .all(JSON.stringify(NAMES))
  const named = (isOwn: boolean) => objects.flatMap(([name, sql]) => (IS_OWN.test(sql) === isOwn ? name : []))
  return { own: named(true), foreign: named(false) }
}

/** Foreign tables and views: parley did not create them, but they have names of tables and views for reports. */
export const foreignReportObjects = (db: Sqlite): readonly string[] => reportObjects(db).foreign

/** SQL with a comment for each column, as in migrations. A table with an `_id` is joined by this number. */
function tableSql({ name, about, columns }: DescribedTable): string {
  const isNumbered = columns.some(column => column.name === '_id')
  const lines = columns.map(column => {
    const must = column.nullMeaning === NEVER_NULL ? ' NOT NULL' : ''
    const isCount = isNumbered && !column.isKey && (column.kind === 'integer' || column.kind === 'boolean')
    const more = column.name === '_id' ? ' PRIMARY KEY' : isCount && must !== '' ? ' DEFAULT 0' : ''
    return `\t\`${column.name}\` ${TYPES[column.kind]}${more}${must} ${sqlComment(fullMeaning(column))}`
  })
  const key = columns.filter(({ isKey }) => isKey).map(column => `\`${column.name}\``)
  const [constraint, end] = isNumbered ? ['UNIQUE', ''] : ['PRIMARY KEY', ' WITHOUT ROWID']
  return `CREATE TABLE \`${name}\` ( ${sqlComment(about)}\n${lines.join(',\n')},\n\t${constraint}(${key.join(', ')})\n)${end}`
}
