import type { Clock } from '../clock.ts'
import { StopError } from '../errors.ts'
import type { Writer } from '../store/file/lock.ts'
import type { OpenStore } from '../store/store.ts'
import type { NewRequest } from '../store/sync/requests.ts'

export interface HandOverOptions {
  path: string
  mode: number
  crmTables: boolean
  clock: Clock
}

/** `done`: the work ran here. `writer`: the process that will do it; undefined when it is not known. */
export type HandOverResult<T> = { done: T } | { writer: Writer | undefined }

/** Runs the work in a transaction. If another process is writing the warehouse, stores the request for it instead. */
export async function runOrHandOver<T>(
  order: HandOverOptions,
  request: NewRequest,
  work: (store: OpenStore) => T,
): Promise<HandOverResult<T>> {
  try {
    return { done: await runHere(order, request, work) }
  } catch (error) {
    const isHeld = error instanceof StopError && error.code === 'database-locked'
    if (!isHeld) throw error
    const { askWriter } = await import('../store/sync/requests.ts')
    return { writer: await askWriter(order.path, request, order.clock) }
  }
}

async function runHere<T>(
  order: HandOverOptions,
  { kind }: NewRequest,
  work: (store: OpenStore) => T,
): Promise<T> {
  const { openStoreInTurn } = await import('../store/store.ts')
  const store = await openStoreInTurn({ ...order, command: kind, pid: process.pid })
  try {
    return await store.transaction(() => work(store))
  } finally {
    store.close()
  }
}

/** Which process writes the warehouse, and when the request will be done. */
export function handOverSentence(writer: Writer | undefined): string {
  const who = writer === undefined ? 'another process' : `process ${writer.pid} (parley ${writer.command})`
  const since = writer === undefined ? '' : ` since ${writer.since}`
  const next =
    writer?.command === 'daemon'
      ? 'It applies the request within seconds, or as soon as it resumes if it is waiting or paused (see parley status).'
      : 'The next parley backfill or daemon applies the request first.'
  return `The warehouse is being written by ${who}${since}. ${next}`
}
