import { systemClock } from '../../../src/clock.ts'
import { openStore } from '../../../src/store/store.ts'

/**
 * A small warehouse that goes from version to version. A version is one transaction: it changes a third of the rows and
 * the one row that all versions change, so that the rows of every table tell which version they are.
 */
export interface VersionedWarehouse {
  path: string
  /** The last version that was written. */
  version(): number
  writeNext(): void
  close(): void
}

/** `id` and the columns that change, in order. */
export type VersionedRow = readonly (string | null)[]

/** What the tables show at a version, by relation. */
export type Contents = ReadonlyMap<string, readonly VersionedRow[]>

const NOW = '2026-06-30T12:00:00.000Z'
const GROUPS = 3
const ACTIVITIES = 48
const MEMBERS = 12

/** The columns of each relation that the versions change. */
export const RELATIONS: ReadonlyMap<string, readonly string[]> = new Map([
  ['teams', ['id', 'name']],
  ['members', ['id', 'name']],
  ['activities', ['id', 'type', '_deleted_at']],
  ['live_activities', ['id', 'type']],
  ['activity_links', ['activity_id', 'context_id']],
  ['live_activity_links', ['activity_id', 'context_id']],
])

/** Pure. */
export function contentsAt(version: number): Contents {
  const activities = indices(ACTIVITIES).map(index => activityAt(index, stampOf(index, version)))
  const live = activities.filter(({ deletedAt }) => deletedAt === null)
  const links = (of: typeof activities) => of.flatMap(({ id, links: ids }) => ids.map(link => [id, link]))
  return new Map<string, readonly VersionedRow[]>([
    ['teams', [['team', textOf(version)]]],
    ['members', indices(MEMBERS).map(index => [`member ${index}`, textOf(stampOf(index, version))])],
    ['activities', activities.map(({ id, type, deletedAt }) => [id, type, deletedAt])],
    ['live_activities', live.map(({ id, type }) => [id, type])],
    ['activity_links', links(activities)],
    ['live_activity_links', links(live)],
  ])
}

export const versionIn = (contents: Contents): number =>
  Number(contents.get('teams')?.[0]?.[1]?.slice(textOf('').length))

const indices = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

const textOf = (version: number | string): string => `version ${version}`

/** The last version that changed a row. */
const stampOf = (index: number, version: number): number =>
  Math.max(0, version - ((version - index + GROUPS * MEMBERS * ACTIVITIES) % GROUPS))

interface Activity {
  id: string
  type: string
  deletedAt: string | null
  /** The records that it links to: the number of these rows changes. */
  links: string[]
}

function activityAt(index: number, stamp: number): Activity {
  return {
    id: `activity ${index}`,
    type: textOf(stamp),
    deletedAt: (stamp + index) % 5 === 0 ? NOW : null,
    links: indices((stamp + index) % 3).map(link => `record ${stamp}.${link}`),
  }
}

export function openVersioned(path: string): VersionedWarehouse {
  const store = openStore({
    path,
    mode: 0o600,
    command: 'test',
    pid: process.pid,
    clock: systemClock(),
  })
  const { db } = store
  const put = {
    team: db.prepare(
      `INSERT INTO teams (id, name, _first_seen_at, _synced_at) VALUES ('team', ?, '${NOW}', '${NOW}') ON CONFLICT DO UPDATE SET name = excluded.name`,
    ),
    member: db.prepare(
      `INSERT INTO members (id, name, _first_seen_at, _synced_at) VALUES (?, ?, '${NOW}', '${NOW}') ON CONFLICT DO UPDATE SET name = excluded.name`,
    ),
    activity: db.prepare(
      `INSERT INTO activities (id, occurred_at, type, _deleted_at, _first_seen_at, _synced_at) VALUES (?, ?, ?, ?, '${NOW}', '${NOW}') ON CONFLICT DO UPDATE SET type = excluded.type, _deleted_at = excluded._deleted_at`,
    ),
    link: db.prepare(
      `INSERT INTO activity_links (activity_id, context_type, context_id, origin) VALUES (?, 'deal', ?, 'DIRECT')`,
    ),
  }
  const unlink = db.prepare('DELETE FROM activity_links WHERE activity_id = ?')
  let last = -1
  const write = (version: number) => {
    put.team.run(textOf(version))
    const isChanged = (index: number) => version === 0 || stampOf(index, version) === version
    for (const index of indices(MEMBERS).filter(isChanged)) put.member.run(`member ${index}`, textOf(version))
    for (const index of indices(ACTIVITIES).filter(isChanged)) {
      const { id, type, deletedAt, links } = activityAt(index, version)
      put.activity.run(
        id,
        `2026-${String((index % 8) + 1).padStart(2, '0')}-01T10:00:00.000Z`,
        type,
        deletedAt,
      )
      unlink.run(id)
      for (const link of links) put.link.run(id, link)
    }
  }
  const warehouse: VersionedWarehouse = {
    path,
    version: () => last,
    writeNext() {
      if (store.attempt(() => write(last + 1))) last += 1
    },
    close: store.close,
  }
  warehouse.writeNext()
  return warehouse
}
