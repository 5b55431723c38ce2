import type { Trouble } from '../../api/reach.ts'
import { isoInstant } from '../../base/clock.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Store } from '../../store/store.ts'
import { META } from '../../store/sync/meta.ts'
import type { UnreachableNote } from '../../store/sync/resource-state.ts'

/** A pause of the governor, which is not the fault of the API. */
export type PauseKind = 'asked-to-wait' | 'day-used-up'

/** Why the API cannot be read, for status and progress displays. */
export interface Unreachable {
  kind: Trouble['kind'] | PauseKind
  /** `since`, `nextTryAt` and `givesUpAt` are in ms since the epoch, by this machine's clock. */
  since: number
  nextTryAt: number
  reason: string
  /** When the run gives up; undefined in the daemon. */
  givesUpAt: number | undefined
}

/**
 * The note in `sync_meta` that the API cannot be read, for `sync_status` and `parley status`. An error of a write is
 * ignored: on a full disk another transaction ends the run.
 */
export interface TroubleNote {
  /** Replaces the note of an earlier process. `stands`: that process ended without access, so its note stays. */
  begin(trouble: Unreachable | undefined, options: { stands: boolean }): void
  /** Stores a change. `mayStand`: access is in doubt, so an earlier note may still be true, and is not removed. */
  update(trouble: Unreachable | undefined, options: { mayStand: boolean }): void
  /** Removes the note when this process stops reading. */
  end(): void
}

export interface TroubleNoteDeps {
  store: Pick<Store, 'state' | 'transaction'>
  /** The resources that are not read while the API cannot be read. */
  resources: readonly ResourceName[]
}

export function createTroubleNote({ store, resources }: TroubleNoteDeps): TroubleNote {
  let noted: string | undefined
  const write = (note: UnreachableNote | undefined) => {
    noted = note && JSON.stringify(note)
    void store.transaction(() => store.state.noteUnreachable(note)).catch(() => undefined)
  }
  const noteOf = ({ kind, reason, since, nextTryAt }: Unreachable): UnreachableNote => ({
    kind,
    reason,
    since: isoInstant(since),
    next_try_at: isoInstant(nextTryAt),
    resources,
  })

  return {
    begin(trouble, { stands }) {
      const stored = store.state.meta(META.unreachable)
      if (stands) noted = stored
      else if (stored !== 'null') write(trouble && noteOf(trouble))
    },
    update(trouble, { mayStand }) {
      if (trouble === undefined && (noted === undefined || mayStand)) return
      const note = trouble && noteOf(trouble)
      if ((note && JSON.stringify(note)) !== noted) write(note)
    },
    end() {
      if (noted !== undefined) write(undefined)
    },
  }
}
