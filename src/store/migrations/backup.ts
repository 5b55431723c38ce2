import { chmodSync, existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { EXIT_STATUS, StopError } from '../../errors.ts'
import { sizeText } from '../../size-text.ts'
import type { Sqlite } from '../database/connection.ts'
import { contentBytes, freeOnDisk } from '../file/size.ts'
import { fsyncPath, writeWholeCopy } from '../file/whole-copy.ts'

/**
 * The copy of a database that is written before an upgrade: `<file>-before-<tag>`, where `tag` names the first
 * migration that is not applied in the copy. Only the newest copy is kept.
 */

/** A smaller database is quickly read again from the API, so no copy is written. */
const MIN_COPIED_BYTES = 10_000_000
/** Space that the upgrade itself may need on top of the copy, as a share of the copy. */
const UPGRADE_SHARE = 0.25

/** Bytes that this process may still write to the disk of a folder. */
export type FreeBytesSync = (folder: string) => number

export interface UpgradeCopy {
  path: string
  bytes: number
}

/** The copy for an upgrade whose first migration is `tag`; undefined when the database is too small for one. */
export function plannedCopy(db: Sqlite, file: string, tag: string): UpgradeCopy | undefined {
  const bytes = contentBytes(db)
  return bytes > MIN_COPIED_BYTES ? { path: `${file}-before-${tag}`, bytes } : undefined
}

/**
 * Writes the planned copy, complete or not at all, with the mode of the database. The copy of an interrupted upgrade
 * is reused when no process has written the database since.
 * @throws StopError 73 `no-space-for-backup` before anything is written
 */
export function writeUpgradeCopy(
  db: Sqlite,
  file: string,
  { path, bytes }: UpgradeCopy,
  freeBytes: FreeBytesSync = freeOnDisk,
): void {
  if (existsSync(path) && hasSameWriter(db, path)) return
  refuseWithoutSpace(file, bytes * (1 + UPGRADE_SHARE), freeBytes)
  const part = `${path}.part`
  try {
    writeWholeCopy(db, part)
    chmodSync(part, statSync(file).mode & 0o777)
    renameSync(part, path)
    fsyncPath(dirname(path))
  } catch (error) {
    rmSync(part, { force: true })
    throw error
  }
  for (const other of copiesOf(file)) if (other !== path) rmSync(other, { force: true })
}

/** Removes the partial copies of processes that died while copying. */
export function removeUnfinishedCopies(file: string): void {
  for (const copy of copiesOf(file)) if (copy.endsWith('.part')) rmSync(copy, { force: true })
}

/** The end of a copy's name: the tag of a migration. Copies that people name `-before-…` do not match. */
const COPY = /^\d{4}_[a-z0-9_]+(\.part)?$/

/** Paths of all copies of upgrades, partial ones included. */
export function copiesOf(file: string): string[] {
  const folder = dirname(file)
  const start = `${basename(file)}-before-`
  return readdirSync(folder)
    .filter(name => name.startsWith(start) && COPY.test(name.slice(start.length)))
    .map(name => join(folder, name))
}

/** Whether the copy has the same `writer` in `sync_meta`. Each process that writes records itself and its start there. */
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

function refuseWithoutSpace(file: string, needed: number, freeBytes: FreeBytesSync): void {
  const folder = dirname(file)
  const free = freeBytes(folder)
  if (free >= needed) return
  throw new StopError(`No space for the copy of ${file} that parley writes before an upgrade`, {
    code: 'no-space-for-backup',
    hint: `The upgrade needs ${sizeText(needed)} in ${folder}: free ${sizeText(needed - free)} more and start it again. Nothing was changed, and the version before still works.`,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
