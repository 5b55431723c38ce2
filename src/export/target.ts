import { existsSync, lstatSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import {
  beginNewFile,
  folderStats,
  fsyncPath,
  makeFolder,
  type NewFile,
  renameDurably,
  writeNewFile,
} from '../store/disk/new-files.ts'
import type { ExportTable } from './export-tables.ts'
import { readMark } from './fingerprint.ts'
import { isManifest, MANIFEST, type Manifest, type TargetFile } from './manifest.ts'
import type { Partition } from './partitions.ts'
import { type FolderUse, lockFolder } from './target-folder.ts'

/** The folder of an export. Files are written under a temporary name and then renamed. */
export type Target = ReturnType<typeof openTarget>

/** The partition of rows without a time, by the name that Hive, Spark, Trino and DuckDB use for a NULL key. */
const NO_MONTH = '__HIVE_DEFAULT_PARTITION__'

const PART = 'part-00000.parquet'
export const EXPORT_FOLDER: FolderUse = {
  verb: 'export',
  lockedName: '.parley-export',
  accepts: 'has an earlier export',
  foreign: 'are not from an export of parley',
  // Other programs also write a manifest.json, so its content is checked.
  isOurs: path => readManifest(path) !== undefined,
}

export const filePath = ({ folder, rows }: Pick<ExportTable, 'folder' | 'rows'>, month: Partition): string =>
  rows.time ? monthPath(folder, month) : `${folder}/${PART}`

const monthPath = (folder: string, month: Partition): string => `${folder}/month=${month ?? NO_MONTH}/${PART}`

const temporaryName = (file: string): string => join(dirname(file), `.${basename(file)}.tmp`)

/** The temporary name of a file, after removing an incomplete file of a crash or a link with this name. */
function freshName(file: string): string {
  rmSync(temporaryName(file), { force: true })
  return temporaryName(file)
}

/**
 * @param mode file mode. Users who may read the files may also enter the folders.
 * @throws StopError (exit status 64) when the folder is not an export of parley, 73 when it cannot be used, 75 when
 * another export is running
 */
export function openTarget(path: string, mode: number, clock: Clock) {
  const lock = lockFolder(path, mode, clock, EXPORT_FOLDER)
  const touched = new Set<string>()

  return {
    path,
    /** All readable folders in the target, whether or not parley created them. */
    folders: (): string[] =>
      readdirSync(path, { withFileTypes: true })
        .filter(entry => entry.isDirectory() && isReadable(join(path, entry.name)))
        .map(({ name }) => name),
    /** Complete files that parley wrote for this table. Removes incomplete files of a crash. */
    files: (folder: string) => filesIn(path, folder),
    /** Begins a file under a temporary name, and creates its folder. `end` atomically moves it to its place. */
    beginFile(name: string): NewFile {
      const place = join(path, name)
      const folders = [dirname(dirname(place)), dirname(place)]
      for (const folder of folders) if (folder !== path) makeFolder(folder, mode)
      const temporary = freshName(place)
      const { file, end, abandon } = beginNewFile(temporary, mode)
      return {
        file,
        end() {
          end()
          renameSync(temporary, place)
          for (const folder of folders) touched.add(folder)
        },
        abandon() {
          abandon()
          removeWithin(path, temporary)
        },
      }
    },
    remove: (file: string) => removeWithin(path, join(path, file)),
    /** Syncs changed folders to the disk, so that replaced files survive a crash of the machine. */
    syncFolders() {
      for (const folder of touched) if (existsSync(folder)) fsyncPath(folder)
      touched.clear()
    },
    readManifest: () => readManifest(path),
    /** Atomically writes a text file next to the folders, unless it has this content. */
    writeText(name: string, text: string) {
      const file = join(path, name)
      const isFile = lstatSync(file, { throwIfNoEntry: false })?.isFile()
      if (isFile && readFileSync(file, 'utf8') === text) return
      const temporary = freshName(file)
      writeNewFile(temporary, text, mode)
      renameDurably(temporary, file)
    },
    close: () => lock.release(),
  }
}

function filesIn(path: string, folder: string): TargetFile[] {
  const inside = folderStats(join(path, folder)) ? readdirSync(join(path, folder)) : []
  const months = inside.flatMap(name => {
    const month = /^month=(\d{4}-\d{2}|__HIVE_DEFAULT_PARTITION__)$/.exec(name)?.[1]
    return month === undefined ? [] : [month === NO_MONTH ? null : month]
  })
  const places = months.map(month => ({ file: monthPath(folder, month), month }))
  return [{ file: `${folder}/${PART}`, month: null }, ...places].flatMap(({ file, month }) => {
    if (!folderStats(dirname(join(path, file)))) return []
    if (lstatSync(temporaryName(join(path, file)), { throwIfNoEntry: false }))
      removeWithin(path, temporaryName(join(path, file)))
    const mark = markAt(join(path, file))
    if (mark?.folder !== folder) return []
    const { fingerprint, rows, bytes } = mark
    return [{ path: file, month, rows, bytes, fingerprint }]
  })
}

/** @returns undefined where there is no file of an export */
function markAt(place: string) {
  const stats = lstatSync(place, { throwIfNoEntry: false })
  // Reading a folder would fail with an error that does not name the folder.
  if (stats?.isDirectory()) throw Object.assign(new Error('It is a folder'), { code: 'EISDIR', path: place })
  return stats?.isFile() ? readMark(place) : undefined
}

/** Whether this user can read the folder. A folder of another program may be unreadable. */
function isReadable(path: string): boolean {
  try {
    readdirSync(path)
    return true
  } catch {
    return false
  }
}

/** @returns undefined where there is no readable manifest */
function readManifest(path: string): Manifest | undefined {
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(path, MANIFEST), 'utf8'))
    return isManifest(manifest) ? manifest : undefined
  } catch {
    // Every file has its own mark, so only the `exported_at` of the files is lost.
    return undefined
  }
}

/** Removes a file, and then the folders of its month and its table if they are empty. */
function removeWithin(path: string, place: string): void {
  rmSync(place, { force: true })
  removeIfEmpty(dirname(place))
  if (dirname(dirname(place)) !== path) removeIfEmpty(dirname(dirname(place)))
}

/** Keeps a folder that has files of other programs. */
function removeIfEmpty(folder: string): void {
  if (existsSync(folder) && readdirSync(folder).length === 0) rmdirSync(folder)
}
