import { createHash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { createAllowance } from './token-bucket.ts'

/** Decides whether a webhook is accepted, before its body is read. */
export interface NudgeGate {
  /** @param given the secret in the request */
  admit(given: string | undefined): 'admitted' | 'wrong-secret' | 'too-many'
}

const REQUESTS = { perSecond: 10, burst: 50 }

export function createNudgeGate(secret: string, clock: Clock): NudgeGate {
  const wanted = digest(secret)
  // Two allowances, so that guesses at the secret do not use up the allowance of the right sender.
  const withSecret = createAllowance({ ...REQUESTS, clock })
  const withoutSecret = createAllowance({ ...REQUESTS, clock })
  return {
    admit(given) {
      const isRight = timingSafeEqual(digest(given ?? ''), wanted)
      if (!(isRight ? withSecret : withoutSecret).take()) return 'too-many'
      return isRight ? 'admitted' : 'wrong-secret'
    },
  }
}

/** Digests have one length, so that the comparison does not reveal the secret's length. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
