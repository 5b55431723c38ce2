import { chmodSync, existsSync, readdirSync, renameSync, rmSync, statfsSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { sizeText } from '../size-text.ts'
import type { Sqlite } from './open.ts'
import { bringToDisk, contentBytes, writeWholeCopy } from './whole-copy.ts'

/**
 * The copy of a database that is made beside it before an upgrade: `<file>-before-<tag>`, `tag` being the first
 * migration that the copy has not had. Only the newest is kept.
 */

/** Below this size everything is soon read again, so that a copy is not worth its place. */
const WORTH_A_COPY_BYTES = 10_000_000
/** What the upgrade itself may need besides the copy, as a share of it. */
const UPGRADE_SHARE = 0.25

/** Bytes that this process may still write to a folder's disk. */
export type FreeBytes = (folder: string) => number

export interface Copy {
  path: string
  bytes: number
}

/** The copy that an upgrade beginning with the migration `tag` makes, or undefined for a database too small for one. */
export function plannedCopy(db: Sqlite, file: string, tag: string): Copy | undefined {
  const bytes = contentBytes(db)
  return bytes > WORTH_A_COPY_BYTES ? { path: `${file}-before-${tag}`, bytes } : undefined
}

/**
 * Makes a planned copy, whole or not at all, with the mode of the database. One that an upgrade which did not come
 * to its end has left is good as long as nobody has written since.
 * @throws StopError 73 `no-space-for-backup` before anything is written
 */
export function makeCopy(
  db: Sqlite,
  file: string,
  { path, bytes }: Copy,
  freeBytes: FreeBytes = freeOnDisk,
): void {
  if (existsSync(path) && isOfLastWriter(db, path)) return
  refuseWithoutSpace(file, bytes * (1 + UPGRADE_SHARE), freeBytes)
  const part = `${path}.part`
  try {
    writeWholeCopy(db, part)
    chmodSync(part, statSync(file).mode & 0o777)
    renameSync(part, path)
    bringToDisk(dirname(path))
  } catch (error) {
    rmSync(part, { force: true })
    throw error
  }
  for (const other of copiesOf(file)) if (other !== path) rmSync(other, { force: true })
}

/** Removes what a process that died while it copied has left. */
export function removeUnfinishedCopies(file: string): void {
  for (const copy of copiesOf(file)) if (copy.endsWith('.part')) rmSync(copy, { force: true })
}

/** Copies have the name of a migration, which tells them from those that people make. */
const COPY = /^\d{4}_[a-z0-9_]+(\.part)?$/

/** Paths of all that upgrades have left, unfinished ones included. */
export function copiesOf(file: string): string[] {
  const folder = dirname(file)
  const start = `${basename(file)}-before-`
  return readdirSync(folder)
    .filter(name => name.startsWith(start) && COPY.test(name.slice(start.length)))
    .map(name => join(folder, name))
}

/** Every process that writes a warehouse notes itself in it, with the instant at which it began. */
function isOfLastWriter(db: Sqlite, path: string): boolean {
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

/** As the system tells it. */
export function freeOnDisk(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

function refuseWithoutSpace(file: string, needed: number, freeBytes: FreeBytes): void {
  const folder = dirname(file)
  const free = freeBytes(folder)
  if (free >= needed) return
  throw new StopError(`There is no space for the copy of ${file} that is made before an upgrade`, {
    code: 'no-space-for-backup',
    hint: `It needs ${sizeText(needed)} in ${folder}: free ${sizeText(needed - free)} more and start it again. Nothing was changed, and the version before still works.`,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
