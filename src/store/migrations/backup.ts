import { chmodSync, existsSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { copiesBeforeUpgrades, upgradeCopyPath } from '../copies/copy-files.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { contentBytes, writeWholeCopy } from '../database/whole-copy.ts'
import { freeOnDisk, requireSpace } from '../disk/disk-space.ts'
import { renameDurably } from '../disk/new-files.ts'

/** The copy of a database that is written before an upgrade. Only the newest copy is kept. */

/** A smaller database is quickly read again from the API, so no copy is written. */
const MIN_COPIED_BYTES = 10_000_000
/** Space that the upgrade itself may need on top of the copy, as a share of the copy. */
const UPGRADE_SHARE = 0.25

export interface UpgradeCopy {
  path: string
  bytes: number
}

/**
 * @returns the copy for an upgrade whose first migration is `tag`; undefined when the database is too small for a copy
 */
export function plannedCopy(db: Sqlite, file: string, tag: string): UpgradeCopy | undefined {
  const bytes = contentBytes(db)
  return bytes > MIN_COPIED_BYTES ? { path: upgradeCopyPath(file, tag), bytes } : undefined
}

/**
 * Writes the planned copy, complete or not at all, with the mode of the database. The copy of an interrupted upgrade is
 * reused when no process has written the database since.
 * @throws StopError (73) `no-space-for-backup` when the disk lacks space; nothing was written then
 */
export function writeUpgradeCopy(
  db: Sqlite,
  file: string,
  { path, bytes }: UpgradeCopy,
  freeBytes = freeOnDisk,
): void {
  if (existsSync(path) && hasSameWriter(db, path)) return
  requireSpace(freeBytes(dirname(file)), {
    file,
    bytes: bytes * (1 + UPGRADE_SHARE),
    message: `No space for the copy of ${file} that parley writes before an upgrade`,
    code: 'no-space-for-backup',
    advice: ', then start parley again. Nothing was changed, and the previous version still works.',
  })
  const part = `${path}.part`
  try {
    writeWholeCopy(db, part)
    chmodSync(part, statSync(file).mode & 0o777)
    renameDurably(part, path)
  } catch (error) {
    rmSync(part, { force: true })
    throw error
  }
  for (const other of copiesBeforeUpgrades(file)) if (other !== path) rmSync(other, { force: true })
}

/** Removes the partial copies of processes that died while copying. */
export function removeUnfinishedCopies(file: string): void {
  for (const copy of unfinishedCopiesOf(file)) rmSync(copy, { force: true })
}

export const unfinishedCopiesOf = (file: string): string[] =>
  copiesBeforeUpgrades(file).filter(copy => copy.endsWith('.part'))

/** Whether the copy has the same `writer` in `sync_meta`. Each writing process stores its PID and its start there. */
function hasSameWriter(db: Sqlite, path: string): boolean {
  try {
    db.prepare('ATTACH ? AS earlier').run(path)
  } catch {
    return false
  }
  try {
    const writer = (schema: string) =>
      db.prepare(`SELECT value FROM ${schema}.sync_meta WHERE key = 'writer'`).pluck().get()
    const earlier = writer('earlier')
    return earlier !== undefined && earlier === writer('main')
  } catch {
    return false
  } finally {
    db.exec('DETACH earlier')
  }
}
