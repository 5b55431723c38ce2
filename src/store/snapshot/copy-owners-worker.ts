import { leaveSignalsToParent } from '../../base/process-signals.ts'
import { ownerOf } from './copy-owner.ts'
import type { OwnersInput } from './copy-owners.ts'

/** The program of the child process in copy-owners.ts. It reads two values of each copy, answers, and exits. */

leaveSignalsToParent()

process.once('message', ({ paths }: OwnersInput) => {
  process.send?.(paths.map(ownerOf), undefined, undefined, () => {
    if (process.connected) process.disconnect()
  })
})
