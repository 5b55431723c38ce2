import type { ResourceName } from '../../src/declare/resource-names.ts'

/**
 * The newest events are polled in time whatever happens to other routes: each list that has them is asked within three
 * polls, and as soon as something that concerned the list itself is over, within three polls and the longest wait between
 * two tries of what has failed. A longer wait than three polls is said.
 */
export interface Heads {
  /** Call it at each request, before it is answered. */
  asked(route: string): void
  /** Counts from now on. */
  restart(): void
  /** Call it from time to time: nothing else sees a list that is never asked again. */
  look(): void
}

interface HeadsOptions {
  resources: readonly ResourceName[]
  now(): number
  pollSeconds(): number
  /** Whether the route cannot be read now, or was not told of. */
  isDisturbed(route: string): boolean
  /** Whether the warehouse says that something is the matter with the resource. */
  isSaid(resource: string): boolean
  find(found: string): void
}

const ROUTES = [
  ['activities', '/v2/activities'],
  ['messages', '/v2/messages'],
] as const

const POLLS = 3
const GRACE_MS = 30_000
const LONGEST_TRY_MS = 16 * 60_000

export function watchHeads({ resources, now, pollSeconds, isDisturbed, isSaid, find }: HeadsOptions): Heads {
  const heads = new Map<string, { resource: string; at: number; graceMs: number }>()
  const restart = () => {
    for (const [resource, route] of ROUTES)
      if (resources.includes(resource)) heads.set(route, { resource, at: now(), graceMs: GRACE_MS })
  }
  restart()
  const look = () => {
    for (const [route, head] of heads) {
      if (isDisturbed(route)) {
        heads.set(route, { ...head, at: now(), graceMs: LONGEST_TRY_MS })
        continue
      }
      const lateMs = now() - head.at - POLLS * pollSeconds() * 1000
      const isLate = lateMs > head.graceMs
      if (!isLate && (lateMs <= GRACE_MS || isSaid(head.resource))) continue
      const seconds = Math.round((now() - head.at) / 1000)
      find(
        `${route} was not asked for ${seconds} s, with polls of ${pollSeconds()} s${isLate ? '' : ', and nothing says so'}`,
      )
      heads.set(route, { ...head, at: now() })
    }
  }
  return {
    look,
    restart,
    asked(route) {
      look()
      const head = heads.get(route)
      if (head !== undefined && !isDisturbed(route))
        heads.set(route, { ...head, at: now(), graceMs: GRACE_MS })
    },
  }
}
