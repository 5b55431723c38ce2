import { clockText } from '../../terminal/wording.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { META, readMeta, readNote } from './meta.ts'

/** The process that writes to a database, as it recorded itself in `sync_meta` when it took the lock. */
export interface Writer {
  pid: number
  command: string
  since: string
  /** Of the file that it opened. Absent in the records of earlier versions. */
  inode?: number | undefined
}

export function readWriter(db: Sqlite): Writer | undefined {
  return readNote<Writer>(key => readMeta(db, key), META.writer)
}

/** `process 812 (parley daemon) since 03:00:00 UTC` */
export function writerText(writer: Writer | undefined, now: number): string {
  if (writer === undefined) return 'another process'
  return `process ${writer.pid} (parley ${writer.command}) since ${clockText(writer.since, now)}`
}
