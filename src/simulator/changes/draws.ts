import { mix, mixBelow } from '../base/random.ts'
import { SALT, type Scene } from '../base/scene.ts'

/** The draws and instants of a series of changes. */
export interface Draws {
  /** A number for item `number` of the current change. */
  of(number: number): number
  /** Each call returns a later instant, so that items are in the order of their changes. */
  nextInstant(): number
  pastInstant(number: number): number
  /** Ends the current change: the next one draws other numbers. */
  advance(): void
}

export function createDraws({ seed, start, end, now }: Scene): Draws {
  let saltOffset = 16
  let lastInstant = 0
  return {
    of: number => mix(seed, SALT.change + 1 + saltOffset, number),
    nextInstant: () => {
      lastInstant = Math.max(lastInstant + 1, Math.floor(now()))
      return lastInstant
    },
    pastInstant: number => {
      const part = mixBelow(seed, SALT.change + 2 + saltOffset, number, 900_000) / 1_000_000
      return Math.floor(start + part * (end - start))
    },
    advance: () => {
      saltOffset += 16
    },
  }
}
