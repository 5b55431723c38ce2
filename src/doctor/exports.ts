import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { shellWord } from '../base/safe-text.ts'
import { MANIFEST } from '../export/manifest.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { readExportNotes } from '../store/sync/export-notes.ts'
import { META, readMeta } from '../store/sync/meta.ts'
import { dateTimeText } from '../terminal/wording.ts'
import type { CheckFindings, Finding } from './finding.ts'

/** Checks whether the noted exports of the warehouse are from before the last purge. Folders that are gone do not count. */
export function exportFindings(db: Sqlite, line: CheckFindings): readonly Finding[] {
  const purgedAt = readMeta(db, META.purgedAt) ?? ''
  const present = readExportNotes(db).filter(({ folder }) => existsSync(join(folder, MANIFEST)))
  const outdated = present.filter(note => note.purgedAt < purgedAt)
  if (present.length === 0) return []
  if (outdated.length === 0) return [line.ok('no known export has content that was purged')]
  return outdated.map(({ folder }) =>
    line.warning(
      `${folder} may have content that was purged from the warehouse at ${dateTimeText(purgedAt)}`,
      `Run parley export parquet ${shellWord(folder)}, without --tables and --since, or remove the folder. parley cannot know of copies of it.`,
    ),
  )
}
