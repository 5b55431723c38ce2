import { ownerOf } from './copy-owner.ts'
import type { OwnersOrder } from './copy-owners.ts'

/** What the process of copy-owners.ts runs: it reads two values of each copy, answers and ends. */

process.once('message', ({ paths }: OwnersOrder) => {
  process.send?.(paths.map(ownerOf), undefined, undefined, () => {
    if (process.connected) process.disconnect()
  })
})
