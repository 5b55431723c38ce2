import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const PRESENT = fileURLToPath(new URL('../../drizzle', import.meta.url))

interface Journal {
  entries: { tag: string; when: number }[]
}

export function journalIn(folder: string): Journal {
  return JSON.parse(readFileSync(`${folder}/meta/_journal.json`, 'utf8')) as Journal
}

/** The migrations of the version that had only the first `count`. */
export function migrationsOf(parent: string, count: number): string {
  const folder = join(parent, `drizzle-${count}`)
  cpSync(PRESENT, folder, { recursive: true })
  const journal = journalIn(folder)
  writeFileSync(
    `${folder}/meta/_journal.json`,
    JSON.stringify({ ...journal, entries: journal.entries.slice(0, count) }),
  )
  return folder
}

/** The current migrations and one more with these statements. */
export function migrationsWith(parent: string, tag: string, sql: string): string {
  const folder = join(parent, `drizzle-${tag}`)
  cpSync(PRESENT, folder, { recursive: true })
  const journal = journalIn(folder)
  const when = Math.max(...journal.entries.map(entry => entry.when)) + 1
  journal.entries.push({ tag, when })
  writeFileSync(`${folder}/meta/_journal.json`, JSON.stringify(journal))
  writeFileSync(`${folder}/${tag}.sql`, sql)
  return folder
}
