import { EXIT_STATUS, StopError } from '../errors.ts'
import type { Job } from './job.ts'
import type { SchedulerProgress } from './progress.ts'

/** Tells things that are gone from access that is gone: then every 403 and 404 says the same. */
export interface Access {
  answered(): void
  /** A 403 or 404 that no declaration expects. @throws StopError when it is access that is gone */
  turnedAway(job: Job): void
}

export interface AccessDeps {
  progress: SchedulerProgress
  /** A daemon that was let in before is only believed to be shut out where several resources are refused. */
  isEndless: boolean
}

/** So many unexpected 403 and 404 without an answer between them, and the rest need not be asked. */
const TURNED_AWAY_IN_A_ROW = 4

export function createAccess({ progress, isEndless }: AccessDeps): Access {
  const refused = new Set<string>()
  return {
    answered() {
      progress.turnedAwayInARow = 0
      refused.clear()
    },
    turnedAway({ resource }) {
      progress.turnedAway += 1
      progress.turnedAwayInARow += 1
      refused.add(resource)
      if (progress.turnedAwayInARow < TURNED_AWAY_IN_A_ROW) return
      if (progress.accepted === 0 || (isEndless && refused.size > 1)) throw accessGone()
    },
  }
}

/** When everything answers 403 or 404, it is not the things that are gone. */
export function accessGone(): StopError {
  return new StopError('The API answers 403 or 404 to everything', {
    code: 'access-gone',
    hint: 'Check api.workspace_id and api.base_url, and what the key may read. Nothing was marked as deleted.',
    exitStatus: EXIT_STATUS.refused,
  })
}
