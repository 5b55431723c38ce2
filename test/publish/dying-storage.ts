import { randomUUID } from 'node:crypto'
import { dirname } from 'node:path'
import type { Storage } from '../../src/publish/storage/storage.ts'

/** A storage that changes nothing any more from some step on, as that of a process that is killed there. */
export interface DyingStorage {
  through(storage: Storage): Storage
  isDead(): boolean
}

export const KILLED = 'killed here'

/** @param step how many changes of the target succeed. The next one is only half done, as a write may be. */
export function dyingAfter(step: number): DyingStorage {
  let left = step
  let isDead = false
  const change = async (work: () => Promise<void>, half: () => Promise<void> = async () => undefined) => {
    if (isDead) throw new Error(KILLED)
    if (left === 0) {
      isDead = true
      await half()
      throw new Error(KILLED)
    }
    left -= 1
    await work()
  }
  const through = (storage: Storage): Storage => {
    const temporary = (path: string) => `${dirname(path)}/.tmp-${randomUUID()}`
    const writeHalf = (path: string, bytes: Buffer) =>
      storage.write(path, bytes.subarray(0, bytes.length / 2))
    return {
      ...storage,
      write: (path, bytes) =>
        change(
          () => storage.write(path, bytes),
          () => writeHalf(path, bytes),
        ),
      async writeIfAbsent(path, bytes) {
        let isWritten = false
        await change(
          async () => {
            isWritten = await storage.writeIfAbsent(path, bytes)
          },
          () => writeHalf(temporary(path), bytes),
        )
        return isWritten
      },
      replace: (path, bytes) =>
        change(
          () => storage.replace(path, bytes),
          () => writeHalf(temporary(path), bytes),
        ),
      remove: path => change(() => storage.remove(path)),
      beginFile(path) {
        const upload = storage.beginFile(path)
        return {
          ...upload,
          end(content) {
            if (isDead || left === 0) {
              isDead = true
              throw new Error(KILLED)
            }
            left -= 1
            upload.end(content)
          },
          abandon: () => (isDead ? undefined : upload.abandon()),
        }
      },
    }
  }
  return { through, isDead: () => isDead }
}
