import type { TargetReader } from './target-reader.ts'

/** Where a publication is stored: a folder or a bucket. */
export interface Storage extends TargetReader {
  /** Whether a lock keeps the publications of other processes away while the storage is open. */
  readonly isLocked: boolean
  /** Writes an object under a new name. The object is complete once the promise resolves, and never partial. */
  write(path: string, bytes: Buffer): Promise<void>
  /** Writes an object unless an object with this name exists. @returns whether it was written */
  writeIfAbsent(path: string, bytes: Buffer): Promise<boolean>
  /** Replaces an object atomically. */
  replace(path: string, bytes: Buffer): Promise<void>
  /** Begins a large object under a new name, which the caller writes as a local file. */
  beginFile(path: string): FileInProgress
  /** Resolves when every file that has ended before this call is an object of the target. */
  uploaded(): Promise<void>
  /** Removes an object, if it exists. */
  remove(path: string): Promise<void>
  /** An error of the target as a StopError that says what to do; any other error unchanged. */
  fault(error: unknown): unknown
}

interface FileInProgress {
  /** The descriptor of the local file to write. */
  file: number
  /** Called when the file is complete. @param content what was written; `sha256` in hex */
  end(content: { bytes: number; sha256: string }): void
  abandon(): void
}
