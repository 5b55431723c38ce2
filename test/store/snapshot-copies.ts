import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { writeWholeCopy } from '../../src/store/database/whole-copy.ts'
import { ownersOf } from '../../src/store/snapshot/copy-process.ts'
import { newFolder, type TemporaryStore } from './temporary-store.ts'

const PROGRAM = new URL('../../dist/store/snapshot/worker.js', import.meta.url)

/** The real `ownersOf`, which starts the compiled program. */
export const owners: typeof ownersOf = (paths, signal) => ownersOf(paths, signal, PROGRAM)

/** Fills a folder with copies of the current warehouse under these names. */
export function putCopies(
  { db }: Pick<TemporaryStore, 'db'>,
  folder: string,
  names: readonly string[],
): void {
  const copy = join(newFolder(), 'copy.db')
  writeWholeCopy(db, copy)
  mkdirSync(folder, { recursive: true })
  for (const name of names) copyFileSync(copy, join(folder, name))
}
