import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { generateSQLiteDrizzleJson, generateSQLiteMigration } from 'drizzle-kit/api'
import { commented } from './comments.ts'
import { withSchema } from './document.ts'
import { CLUSTERED, SCHEMA } from './schema.ts'

/**
 * `npm run schema -- NAME`: writes the migration from the last snapshot to the declared schema, and adds what
 * drizzle cannot express: STRICT, and WITHOUT ROWID for tables stored by their key alone. Then brings the comments
 * of all migrations and the generated part of `drizzle/README.md` up to date with the declarations.
 */

interface Journal {
  version: string
  dialect: string
  entries: { idx: number; version: string; when: number; tag: string; breakpoints: boolean }[]
}

type Snapshot = Awaited<ReturnType<typeof generateSQLiteDrizzleJson>>

const folder = fileURLToPath(new URL('.', import.meta.url))
const journalFile = `${folder}meta/_journal.json`

function readJournal(): Journal {
  if (!existsSync(journalFile)) return { version: '7', dialect: 'sqlite', entries: [] }
  return JSON.parse(readFileSync(journalFile, 'utf8')) as Journal
}

function snapshotFile(index: number): string {
  return `${folder}meta/${String(index).padStart(4, '0')}_snapshot.json`
}

/** Adds the table options that drizzle does not know. */
function completed(statement: string): string {
  const name = /^CREATE TABLE `(?:__new_)?(\w+)`/.exec(statement)?.[1]
  if (name === undefined) return statement
  return statement.replace(/\);\s*$/, CLUSTERED.has(name) ? ') STRICT, WITHOUT ROWID;' : ') STRICT;')
}

const journal = readJournal()
const last = journal.entries.at(-1)
const previous = last
  ? (JSON.parse(readFileSync(snapshotFile(last.idx), 'utf8')) as Snapshot)
  : await generateSQLiteDrizzleJson({})
const current = await generateSQLiteDrizzleJson({ ...SCHEMA }, previous.id)
const statements = await generateSQLiteMigration(previous, current)

if (statements.length === 0) {
  process.stdout.write('The migrations already make the declared schema.\n')
} else {
  const idx = (last?.idx ?? -1) + 1
  const tag = `${String(idx).padStart(4, '0')}_${process.argv[2] ?? 'change'}`
  // An older version recognises a newer database by a migration dated after all that it knows, so dates must only grow.
  const when = Math.max(Date.now(), (last?.when ?? 0) + 1)
  mkdirSync(`${folder}meta`, { recursive: true })
  writeFileSync(`${folder}${tag}.sql`, `${statements.map(completed).join('\n--> statement-breakpoint\n')}\n`)
  writeFileSync(snapshotFile(idx), `${JSON.stringify(current, null, 2)}\n`)
  journal.entries.push({ idx, version: '6', when, tag, breakpoints: true })
  writeFileSync(journalFile, `${JSON.stringify(journal, null, 2)}\n`)
  process.stdout.write(`Wrote drizzle/${tag}.sql\n`)
}

for (const { tag } of journal.entries) {
  const file = `${folder}${tag}.sql`
  writeFileSync(file, commented(readFileSync(file, 'utf8')))
}
process.stdout.write('Wrote the comments of the migrations\n')

const page = `${folder}README.md`
writeFileSync(page, withSchema(readFileSync(page, 'utf8')))
process.stdout.write('Wrote drizzle/README.md\n')
