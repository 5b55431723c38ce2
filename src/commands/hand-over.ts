import type { Clock } from '../clock.ts'
import { StopError } from '../errors.ts'
import type { Writer } from '../store/lock.ts'
import type { Wish } from '../store/requests.ts'
import type { Store } from '../store/store.ts'

export interface Order {
  path: string
  mode: number
  crmTables: boolean
  clock: Clock
}

/** `writer`: the process that will do it, as far as it is known. */
export type Handled<T> = { done: T } | { writer: Writer | undefined }

/** Works in a transaction where no process writes the warehouse, else leaves the wish for the one that does. */
export async function doOrHandOver<T>(
  order: Order,
  wish: Wish,
  work: (store: Store) => T,
): Promise<Handled<T>> {
  try {
    return { done: await doHere(order, wish, work) }
  } catch (error) {
    const isHeld = error instanceof StopError && error.code === 'database-locked'
    if (!isHeld) throw error
    const { askWriter } = await import('../store/requests.ts')
    return { writer: await askWriter(order.path, wish, order.clock) }
  }
}

async function doHere<T>(order: Order, { kind }: Wish, work: (store: Store) => T): Promise<T> {
  const { openStoreInTurn } = await import('../store/store.ts')
  const store = await openStoreInTurn({ ...order, command: kind, pid: process.pid })
  try {
    return await store.transaction(() => work(store))
  } finally {
    store.close()
  }
}

/** Who writes the warehouse, and when it takes up what was handed over. */
export function whoTakesItUp(writer: Writer | undefined): string {
  const who = writer === undefined ? 'another process' : `process ${writer.pid} (parley ${writer.command})`
  const since = writer === undefined ? '' : ` since ${writer.since}`
  const next =
    writer?.command === 'daemon'
      ? 'It takes this up within seconds; when it is waiting or paused, once it goes on (see parley status).'
      : 'It goes on as it began: the next parley backfill does this first, or the daemon when it is started.'
  return `The warehouse has been written by ${who}${since}. ${next}`
}
