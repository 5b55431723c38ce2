import type { Feed, Resource } from '../resource.ts'
import type { EngineContext } from './context.ts'

/** Feeds of which this round has read everything, so that a reject that was not seen again is settled. */
export function feedsReadWhole({ options }: EngineContext, { name, feeds }: Resource): string[] {
  const whole = (feed: Feed) =>
    feed.mode === 'snapshot' ||
    feed.mode === 'singleton' ||
    (feed.mode === 'timeline' && options.since === null)
  return Object.entries(feeds).flatMap(([feed, declared]) => (whole(declared) ? [`${name}.${feed}`] : []))
}
