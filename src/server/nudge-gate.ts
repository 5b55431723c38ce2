import { createHash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { createAllowance } from './allowance.ts'

/** Decides who may nudge, before anything else of the request is looked at. */
export interface NudgeGate {
  /** @param given what the request gave as its secret */
  admit(given: string | undefined): 'admitted' | 'wrong-secret' | 'too-many'
}

const REQUESTS = { perSecond: 10, burst: 50 }

export function createNudgeGate(secret: string, clock: Clock): NudgeGate {
  const wanted = digest(secret)
  // Two allowances, or whoever guesses at the secret would use up that of the one who knows it.
  const known = createAllowance({ ...REQUESTS, clock })
  const strangers = createAllowance({ ...REQUESTS, clock })
  return {
    admit(given) {
      const isRight = timingSafeEqual(digest(given ?? ''), wanted)
      if (!(isRight ? known : strangers).take()) return 'too-many'
      return isRight ? 'admitted' : 'wrong-secret'
    },
  }
}

/** Of one length whatever is given, so that comparing tells nothing of the length either. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
