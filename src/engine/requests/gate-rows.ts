import { MINUTE_MS } from '../../base/clock.ts'
import { API_GATE, apiGates, GATE_KINDS, type Gate } from '../../store/sync/gates.ts'
import type { EngineContext } from '../context/context.ts'

/** Once the API is back, its lists have this time to be read before they count as late. */
const CATCHING_UP_MS = 10 * MINUTE_MS

const withoutApi = (gates: readonly Gate[]) =>
  apiGates(gates).flatMap(({ kind, resources }) => (GATE_KINDS[kind].isFault ? resources : []))

/**
 * Keeps the rows of `sync_gates` as the process sees the API, for `sync_status` and other processes. An error of a
 * write is ignored: on a full disk another transaction ends the run.
 */
export interface GateRows {
  /** Replaces the rows of an earlier process. `stands`: that process ended without access, so its rows stay. */
  begin(closed: readonly Gate[], options: { stands: boolean }): void
  /**
   * Stores a change. `mayStand`: access is in doubt, so an earlier gate of the whole API may still be closed, and its
   * row stays.
   */
  update(closed: readonly Gate[], options: { mayStand: boolean }): void
  /** Called when this process stops reading. Leaves only these rows. */
  end(closed: readonly Gate[]): void
}

export function createGateRows(context: Pick<EngineContext, 'store' | 'server' | 'excusedUntil'>): GateRows {
  const { store, server, excusedUntil } = context
  let stored = '[]'
  let seen: readonly Gate[] | undefined
  const write = (closed: readonly Gate[]) => {
    // Each request calls this, and hundreds of CRM objects may be closed, so unchanged gates are skipped first.
    if (closed.length === seen?.length && closed.every((gate, index) => gate === seen?.[index])) return
    for (const name of withoutApi(seen ?? [])) excusedUntil.set(name, server.now() + CATCHING_UP_MS)
    for (const name of withoutApi(closed)) excusedUntil.set(name, Number.POSITIVE_INFINITY)
    seen = closed
    const rows = JSON.stringify(closed)
    if (rows === stored) return
    stored = rows
    void store.transaction(() => store.gates.set(closed)).catch(() => undefined)
  }
  return {
    begin(closed, { stands }) {
      stored = JSON.stringify(store.gates.closed())
      if (!stands) write(closed)
    },
    update(closed, { mayStand }) {
      if (!mayStand || closed.some(({ what }) => what === API_GATE)) write(closed)
    },
    end: write,
  }
}
