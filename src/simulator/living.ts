import { type Clock, MINUTE_MS } from '../base/clock.ts'
import type { Change } from './changes/change.ts'
import type { Controls } from './control.ts'
import type { Faults } from './faults/faults.ts'

/** What happens in a workspace that lives: people change it all the time, and now and then the API has trouble. */

interface Weighted {
  /** Relative frequency. */
  weight: number
  change: Change
}

export const LIVING_CHANGES: readonly Weighted[] = [
  { weight: 10, change: { kind: 'publish', resource: 'messages' } },
  { weight: 4, change: { kind: 'publish', resource: 'meetings' } },
  { weight: 2, change: { kind: 'publish', resource: 'meetings', unready: true } },
  { weight: 2, change: { kind: 'completeOverview' } },
  { weight: 8, change: { kind: 'edit', resource: 'crm_records', object: 'deal' } },
  { weight: 3, change: { kind: 'publishLate', resource: 'messages', count: 2 } },
  { weight: 2, change: { kind: 'edit', resource: 'messages' } },
  { weight: 2, change: { kind: 'edit', resource: 'meetings' } },
  { weight: 2, change: { kind: 'delete', resource: 'messages' } },
  { weight: 1, change: { kind: 'hide', resource: 'meetings' } },
  { weight: 1, change: { kind: 'hide', resource: 'members' } },
  { weight: 1, change: { kind: 'reveal', resource: 'members' } },
]

const TROUBLES: readonly { what: string; faults: Faults; ms: number }[] = [
  {
    what: 'for 10 s the API fails every third request (503, 502, lost connections)',
    faults: [
      { kind: 'status', status: 503, probability: 0.2 },
      { kind: 'status', status: 502, probability: 0.1 },
      { kind: 'reset', probability: 0.05 },
    ],
    ms: 10_000,
  },
  {
    what: 'for 15 s the API refuses every second request as too many (429)',
    faults: [{ kind: 'status', status: 429, probability: 0.5 }],
    ms: 15_000,
  },
  {
    what: 'for 10 s the API answers only 503',
    faults: [{ kind: 'status', status: 503, probability: 1 }],
    ms: 10_000,
  },
]

const MEAN_GAP_MS = 3000

interface LivingDeps {
  clock: Pick<Clock, 'sleep'>
  /** From 0 to below 1. */
  random: () => number
  /** The faults between two troubles. */
  faults: Faults
  /** Gets a line for each change and each trouble. */
  say(line: string): void
}

/** Changes the workspace until the signal. */
export async function keepChanging(
  { apply, setFaults }: Pick<Controls, 'apply' | 'setFaults'>,
  { clock, random, faults, say }: LivingDeps,
  signal: AbortSignal,
): Promise<void> {
  const makeChanges = async () => {
    for (;;) {
      await clock.sleep(-Math.log(1 - random()) * MEAN_GAP_MS, signal)
      if (signal.aborted) return
      const change = pickWeighted(LIVING_CHANGES, random())
      const { ids } = apply(change)
      if (ids.length > 0)
        say([change.kind, ...('resource' in change ? [change.resource] : []), ...ids].join(' '))
    }
  }
  const makeTrouble = async () => {
    for (;;) {
      await clock.sleep(MINUTE_MS, signal)
      const trouble = TROUBLES[Math.floor(random() * TROUBLES.length)]
      if (signal.aborted || !trouble) return
      say(trouble.what)
      setFaults([...trouble.faults, ...faults])
      await clock.sleep(trouble.ms, signal)
      if (signal.aborted) return
      setFaults(faults)
      say('the API works again')
    }
  }
  await Promise.all([makeChanges(), makeTrouble()])
}

function pickWeighted(all: readonly Weighted[], chance: number): Change {
  const total = all.reduce((sum, { weight }) => sum + weight, 0)
  let left = chance * total
  const found = all.find(({ weight }) => {
    left -= weight
    return left < 0
  })
  if (!found) throw new RangeError(`a chance is from 0 to below 1, not ${chance}`)
  return found.change
}
