/** Where a publication is stored: a folder or a bucket. Paths are relative to the target, with `/`. */
export interface Storage {
  /** The target as the user named it. */
  readonly name: string
  /** The target as readers find it, without a slash at the end. */
  readonly location: string
  /** Undefined where there is no such object. */
  read(path: string): Promise<Buffer | undefined>
  /** Writes an object of which no other has the name. It is complete once the promise resolves, and never partial. */
  write(path: string, bytes: Buffer): Promise<void>
  /** Writes an object unless one of this name exists. @returns whether it was written */
  writeIfAbsent(path: string, bytes: Buffer): Promise<boolean>
  /** Replaces an object atomically. */
  replace(path: string, bytes: Buffer): Promise<void>
  /**
   * Writes a large object by a function that creates a file.
   * @param create writes the complete file at the path that it gets
   */
  writeFile<Result>(path: string, create: (file: string) => Promise<Result>): Promise<Result>
  /** The paths of all objects whose path begins with the prefix. */
  list(prefix: string): Promise<readonly string[]>
  /** Removes an object, if it exists. */
  remove(path: string): Promise<void>
  close(): void
}
