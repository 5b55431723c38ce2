import type { Clock } from '../base/clock.ts'
import { createSecretCheck } from './access/secret-check.ts'
import { createAllowance } from './access/token-bucket.ts'

/** Decides whether a webhook is accepted, before its body is read. */
export interface NudgeGate {
  /** @param given the secret in the request */
  admit(given: string | undefined): 'admitted' | 'wrong-secret' | 'too-many'
}

const REQUESTS = { perSecond: 10, burst: 50 }

export function createNudgeGate(secret: string, clock: Clock): NudgeGate {
  const isSecret = createSecretCheck(secret)
  // Two allowances, so that guesses at the secret do not use up the allowance of the right sender.
  const withSecret = createAllowance({ ...REQUESTS, clock })
  const withoutSecret = createAllowance({ ...REQUESTS, clock })
  return {
    admit(given) {
      const isRight = isSecret(given)
      if (!(isRight ? withSecret : withoutSecret).take()) return 'too-many'
      return isRight ? 'admitted' : 'wrong-secret'
    },
  }
}
