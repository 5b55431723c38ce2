import type { Sent } from '../api/client.ts'
import type { Clock } from '../clock.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'

export interface SilenceDeps {
  clock: Clock
  /** Infinite in the daemon, which never gives up. */
  giveUpMs: number
}

/** The first request of all must at least connect within this time. */
const FIRST_CONNECTION_MS = 10_000

/** Notices when nothing answers any more. A wait that the API asked for is no silence. */
export interface Silence {
  heard(sent: Sent): void
  /** Waiting for a permit is the governor's doing. */
  excuse(ms: number): void
  patienceLeft(): number
  /** What the run ends with when nothing has answered for too long. */
  tooLong(): StopError | undefined
}

export function createSilence({ clock, giveUpMs }: SilenceDeps): Silence {
  let heardAt = clock.elapsed()
  let everConnected = false
  let last = ''
  const patienceLeft = () => {
    const patience = everConnected ? giveUpMs : Math.min(giveUpMs, FIRST_CONNECTION_MS)
    return heardAt + patience - clock.elapsed()
  }
  return {
    heard(sent) {
      const silent = sent.kind === 'retry' && sent.status === undefined
      if (silent) last = sent.message
      else {
        heardAt = clock.elapsed()
        last = ''
      }
      if (!silent || sent.cause !== 'unreachable') everConnected = true
    },
    excuse(ms) {
      heardAt += ms
    },
    patienceLeft,
    tooLong() {
      if (last === '' || giveUpMs === Number.POSITIVE_INFINITY || patienceLeft() > 0) return undefined
      return new StopError(last, {
        code: 'api-silent',
        hint: 'Check api.base_url and the network, then run it again; it goes on where it stopped.',
        exitStatus: EXIT_STATUS.apiUnavailable,
      })
    },
  }
}
