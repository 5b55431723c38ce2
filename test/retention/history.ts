import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { type Clock, DAY_MS, isoInstant } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import {
  dueMaintenance,
  type MaintainDeps,
  maintain,
  removePurgedRemains,
} from '../../src/retention/maintain.ts'
import { noteSnapshotFolder } from '../../src/retention/old-copies.ts'
import { writeWholeCopy } from '../../src/store/database/whole-copy.ts'
import { ownerOfCopy } from '../../src/store/snapshot/copy-process.ts'
import type { OpenStore } from '../../src/store/store.ts'
import { newFolder, openAt, temporaryStore, withShortcuts } from '../store/temporary-store.ts'
import {
  createMarker,
  isContentAt,
  type MarkedRow,
  markedWorld,
  markersIn,
  storedMarkers,
} from '../store/unique-texts.ts'

/** The events of a warehouse. Offsets are those of this machine's clock from the true time. */
export type Happening =
  | { kind: 'read' }
  | { kind: 'delete'; which: number }
  | { kind: 'time'; hours: number }
  | { kind: 'clock'; offsetMs: number }
  | { kind: 'api'; answers: boolean }
  | { kind: 'night'; diesAtStep: number | undefined }
  | { kind: 'snapshot'; isCutShort: boolean }
  | { kind: 'folder'; isOwn: boolean }

/** Rows that were read together, and the texts that identify their content. */
interface Reading {
  rows: readonly MarkedRow[]
  markers: readonly string[]
  deletion: Aged | undefined
}

/** An item with an age, and by how much parley may overestimate that age. */
interface Aged {
  at: number
  uncertainMs: number
}

interface Snapshot extends Aged {
  path: string
}

/** A warehouse has one of these, which each read replaces. */
const SINGLE = /^(bot_|integrations)/

class Killed extends Error {}

const START = Date.parse('2026-03-04T12:00:00.000Z')
export const WITHDRAWN_DAYS = 30
/** Clocks that differ by up to a day agree, at the time of the note and of the maintenance. */
const TRUSTED_MS = 2 * DAY_MS

/** A warehouse, its folders, and the truth about them. The test removes all of it. */
export async function startHistory() {
  const folder = newFolder()
  const path = join(folder, 'parley.db')
  const shared = join(folder, 'shared')
  const mark = createMarker()
  const log = await createLog({ level: 'silent' })
  let store: OpenStore = openAt(path)
  let trueNow = START
  let offsetMs = 0
  let answers = true
  let isOwnFolder = true
  let lastNight: number | undefined
  const readings: Reading[] = []
  const snapshots: Snapshot[] = []

  const clock: Clock = {
    now: () => trueNow + offsetMs,
    elapsed: () => trueNow - START,
    sleep: () => Promise.resolve(),
  }
  const foreign = putForeignSnapshots(shared, basename(path))

  const agedNow = (): Aged => {
    const isRight = Math.abs(offsetMs) <= DAY_MS
    // Ages count from the first maintenance, since no earlier clock is known to be right.
    return { at: trueNow, uncertainMs: isRight || lastNight === undefined ? 0 : trueNow - lastNight }
  }
  const snapshotFolder = () => (isOwnFolder ? `${path}.snapshots` : shared)
  const deps = (of: OpenStore): MaintainDeps => ({
    store: of,
    clock,
    log,
    settings: {
      database: { path, mode: 0o600 },
      retention: { withdrawnDays: WITHDRAWN_DAYS, runsDays: 90 },
      search: { enabled: false },
      snapshot: { every: undefined, keep: 7, folder: isOwnFolder ? undefined : shared },
    },
    signal: new AbortController().signal,
    readOwners: async paths => paths.map(ownerOfCopy),
  })

  /** The files of a killed process: commits are in the WAL, and nothing was cleaned up. */
  const reopen = () => {
    const files = [path, `${path}-wal`]
    for (const file of files) if (existsSync(file)) copyFileSync(file, `${file}.left`)
    store.close()
    for (const file of files) if (existsSync(`${file}.left`)) renameSync(`${file}.left`, file)
    rmSync(`${path}-shm`, { force: true })
    store = openAt(path)
  }

  const night = async (diesAtStep: number | undefined) => {
    const due = dueMaintenance({ store, clock }, answers ? trueNow : undefined)
    const work = { maintenance: maintain, cleaning: removePurgedRemains }
    if (due !== 'maintenance' && due !== 'cleaning') return
    try {
      await work[due](deps(dying(store, diesAtStep)))
      if (due === 'maintenance') lastNight = trueNow
    } catch (error) {
      if (!(error instanceof Killed)) throw error
      reopen()
    }
  }

  const happen: { [K in Happening['kind']]: (one: Extract<Happening, { kind: K }>) => Promise<void> | void } =
    {
      read() {
        const shortcuts = withShortcuts(store, folder, path)
        const before = new Set(storedMarkers(shortcuts).map(({ marker }) => marker))
        const world = markedWorld(shortcuts, mark)
        const now = isoInstant(clock.now())
        world.write(now)
        world.reject(now)
        const added = storedMarkers(shortcuts).filter(
          ({ marker, place }) => !before.has(marker) && !SINGLE.test(place),
        )
        const elsewhere = new Set(added.flatMap(({ place, marker }) => (isContentAt(place) ? [] : [marker])))
        const markers = added.map(({ marker }) => marker).filter(marker => !elsewhere.has(marker))
        readings.push({
          rows: world.rows.filter(({ table }) => !SINGLE.test(table)),
          markers,
          deletion: undefined,
        })
      },
      async delete({ which }) {
        const reading = readings[which % Math.max(readings.length, 1)]
        if (!reading || reading.deletion) return
        reading.deletion = agedNow()
        const now = isoInstant(clock.now())
        await store.transaction(() => {
          for (const { table, key } of reading.rows) store.tombstone(table, [key], now)
        })
      },
      time: ({ hours }) => {
        trueNow += hours * 3_600_000
      },
      clock: one => {
        offsetMs = one.offsetMs
      },
      api: one => {
        answers = one.answers
      },
      night: ({ diesAtStep }) => night(diesAtStep),
      async snapshot({ isCutShort }) {
        await noteSnapshotFolder(deps(store))
        mkdirSync(snapshotFolder(), { recursive: true })
        const stamp = isoInstant(clock.now()).replace(/:|\.\d+/g, '')
        const file = join(snapshotFolder(), `parley-${stamp}.db${isCutShort ? '.0123abcd.part' : ''}`)
        if (existsSync(file)) return
        writeWholeCopy(store.db, file)
        utimesSync(file, clock.now() / 1000, clock.now() / 1000)
        if (!isCutShort) snapshots.push({ path: file, ...agedNow() })
      },
      folder: one => {
        isOwnFolder = one.isOwn
      },
    }

  const isYoung = ({ at, uncertainMs }: Aged) =>
    trueNow - at + uncertainMs < WITHDRAWN_DAYS * DAY_MS - TRUSTED_MS

  return {
    happen: (one: Happening) => happen[one.kind](one as never),
    /** Losses that should not be, each as a sentence. */
    losses(): string[] {
      const stored = new Set(storedMarkers(withShortcuts(store, folder, path)).map(({ marker }) => marker))
      const kept = readings.filter(({ deletion }) => !deletion || isYoung(deletion))
      return [
        ...kept.flatMap(({ markers }) =>
          markers.filter(marker => !stored.has(marker)).map(one => `${one} was purged`),
        ),
        ...snapshots
          .filter(one => isYoung(one) && !existsSync(one.path))
          .map(one => `${one.path} was removed`),
        ...foreign.losses(),
      ]
    },
    /** Texts of deleted rows that are anywhere in the files of the folder. */
    remains(): string[] {
      store.close()
      const files = readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile())
        .map(entry => join(entry.parentPath, entry.name))
      const left = files
        .filter(file => !foreign.paths.has(file))
        .map(file => [file, markersIn(readFileSync(file, 'latin1'))] as const)
      const gone = readings.filter(({ deletion }) => deletion).flatMap(({ markers }) => markers)
      return left.flatMap(([file, markers]) =>
        gone.filter(marker => markers.has(marker)).map(marker => `${marker} in ${file}`),
      )
    },
    close: () => store.close(),
  }
}

/** A copy of another warehouse with the same file name, in a shared folder. */
function putForeignSnapshots(folder: string, database: string) {
  mkdirSync(folder)
  const name = database.replace(/\.db$/, '')
  const names = ['2025-01-01T034700Z', '2026-03-03T034700Z', '2031-01-01T034700Z']
  const copies = new Map<string, Buffer>()
  const { db } = temporaryStore()
  for (const stamp of names) {
    const path = join(folder, `${name}-${stamp}.db`)
    writeWholeCopy(db, path)
    utimesSync(path, START / 1000, START / 1000)
    copies.set(path, readFileSync(path))
  }
  return {
    paths: new Set(copies.keys()),
    losses: () =>
      [...copies].flatMap(([path, bytes]) =>
        existsSync(path) && readFileSync(path).equals(bytes)
          ? []
          : [`${path} of another warehouse was touched`],
      ),
  }
}

/** A store whose process is killed before the given step. Each transaction and each cleaning is a step. */
function dying(store: OpenStore, diesAtStep: number | undefined): OpenStore {
  let step = 0
  const next = () => {
    if (step === diesAtStep) throw new Killed('killed')
    step += 1
  }
  const transaction = async <T>(work: () => T): Promise<T> => {
    next()
    return store.transaction(work)
  }
  return {
    ...store,
    transaction: Object.assign(transaction, { ...store.transaction }),
    purger: {
      ...store.purger,
      async clean(options) {
        next()
        return store.purger.clean(options)
      },
    },
  }
}
