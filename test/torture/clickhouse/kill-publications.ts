import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { expectedDatabase, shownRows } from '../../engines/clickhouse-database.ts'
import type { ClickHouseServer } from '../../engines/clickhouse-servers.ts'
import type { Ended } from '../../support/parley-process.ts'
import { createDraw, type Draw } from '../draw.ts'
import { contentsAt, openVersioned, RELATIONS, type VersionedWarehouse, versionIn } from './versions.ts'

/**
 * Publishes a warehouse that changes to a ClickHouse server, again and again, and kills the publishing process or the
 * server at random moments. Readers compare what the views show with the version of the warehouse that the rows name.
 */
export interface KillRun {
  server: ClickHouseServer
  /** The program to run. */
  program: string
  seed: number
  publications: number
  /** How many of them are killed. */
  kills: number
  /** During how many others the server is killed. */
  serverKills: number
  onPublication?(tally: KillTally): void
}

export interface KillTally {
  /** Publications that ended with status 0. */
  complete: number
  /** Killed publications, and how many of them did not complete. */
  killed: number
  interrupted: number
  /** Publications during which the server was killed, and how many of them failed. */
  serverKilled: number
  failed: number
  /** How often all views were compared with one version, and how often with SQLite. */
  looks: number
  compared: number
  /** How often `parley publish verify` ran at the same time as a publication. */
  verified: number
  /** The versions of the warehouse that readers have seen. */
  seen: number
  faults: string[]
}

type Disturbance = 'process' | 'server' | undefined

interface Running extends KillRun {
  draw: Draw
  warehouse: VersionedWarehouse
  reader: Reader
  /** How long a publication takes, in ms. */
  usualMs: number
  /** True: the warehouse does not change. */
  isHalted: boolean
  tally: KillTally
}

const DATABASE = 'lake'
/** A run ends when this number of publications were wrong. */
const MOST_FAULTS = 5
/** How often a publication is compared with SQLite as a whole. */
const COMPARED = 10
/** How often `parley publish verify` reads at the same time. */
const VERIFIED = 10

export async function killPublications(run: KillRun): Promise<KillTally> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-versions-'))
  const warehouse = openVersioned(join(folder, 'parley.db'))
  const tally: KillTally = {
    ...{ complete: 0, killed: 0, interrupted: 0, serverKilled: 0, failed: 0 },
    ...{ looks: 0, compared: 0, verified: 0, seen: 0, faults: [] },
  }
  const draw = createDraw(run.seed)
  const reader = createReader(run.server, tally)
  const running: Running = { ...run, draw, warehouse, reader, usualMs: 0, isHalted: false, tally }
  const writer = setInterval(() => {
    if (!running.isHalted) warehouse.writeNext()
  }, WRITE_MS)
  try {
    await run.server.run(`CREATE DATABASE ${DATABASE}`)
    for (const [place, disturbance] of plan(run, draw).entries()) {
      const isVerified = disturbance !== 'server' && place % VERIFIED === VERIFIED - 1
      await Promise.all([publishDisturbed(running, disturbance), isVerified ? verify(running) : undefined])
      if (disturbance === undefined && place % COMPARED === 0) await compare(running)
      run.onPublication?.(tally)
      if (tally.faults.length >= MOST_FAULTS) break
    }
    return tally
  } finally {
    clearInterval(writer)
    warehouse.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The warehouse changes this often. */
const WRITE_MS = 40

/** Which publications are disturbed, in a random order; the first one is not, and tells how long one takes. */
function plan({ publications, kills, serverKills }: KillRun, draw: Draw): Disturbance[] {
  const calm = Math.max(2, publications - kills - serverKills) - 2
  const all = [
    ...Array<Disturbance>(kills).fill('process'),
    ...Array<Disturbance>(serverKills).fill('server'),
    ...Array<Disturbance>(calm).fill(undefined),
  ]
  for (let last = all.length - 1; last > 0; last--) {
    const other = draw.below(last + 1)
    ;[all[last], all[other]] = [all[other], all[last]]
  }
  return [undefined, ...all, undefined]
}

async function publishDisturbed(running: Running, disturbance: Disturbance): Promise<void> {
  const { tally, server, reader } = running
  const began = performance.now()
  const { child, ended } = publish(running)
  let isOver = false
  const end = ended.finally(() => {
    isOver = true
  })
  // Before the first publication there are no views.
  const mayFail = disturbance === 'server' || tally.complete === 0
  const looks = reader.lookUntil(() => isOver, mayFail)
  if (disturbance !== undefined) await disturb(running, { child, ended }, disturbance)
  const { status, stderr } = await end
  await looks
  if (disturbance === 'server') await server.start()
  if (disturbance === 'process') tally.killed += 1
  if (disturbance === 'server') tally.serverKilled += 1
  if (status === 0) {
    tally.complete += 1
    if (disturbance === undefined) running.usualMs = performance.now() - began
  } else if (disturbance === 'process' && status === null) tally.interrupted += 1
  else if (disturbance === 'server' && status === 73) tally.failed += 1
  else tally.faults.push(`a publication (${disturbance ?? 'undisturbed'}) ended with ${status}: ${stderr}`)
  await reader.look()
}

interface Publishing {
  child: ChildProcess
  ended: Promise<Ended>
}

const publish = (running: Running): Publishing => start(running, 'publish')

function start({ program, server, warehouse }: Running, ...command: readonly string[]): Publishing {
  const target = `clickhouse://${server.host}/${DATABASE}`
  const child = spawn(process.execPath, [program, ...command, target, '--database', warehouse.path], {
    cwd: '/',
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = new Promise<number | null>(resolve => child.on('close', resolve))
  const ended = Promise.all([closed, text(child.stdout), text(child.stderr)]).then(
    ([status, stdout, stderr]) => ({ status, stdout, stderr }),
  )
  return { child, ended }
}

async function disturb(
  { draw, usualMs, server }: Running,
  { child, ended }: Publishing,
  disturbance: 'process' | 'server',
): Promise<void> {
  // Node needs the first part of this time to start.
  await Promise.race([pause(usualMs * (0.2 + draw.below(80) / 100)), ended])
  if (disturbance === 'process') child.kill('SIGKILL')
  else await server.kill()
}

/** No fault may be reported, whatever a publication does meanwhile. */
async function verify(running: Running): Promise<void> {
  const { status, stdout, stderr } = await start(running, 'publish', 'verify').ended
  running.tally.verified += 1
  if (status !== 0) running.tally.faults.push(`verify ended with ${status}: ${stderr}${stdout}`)
}

/** Halts the writer, publishes, and compares every table with SQLite. */
async function compare(running: Running): Promise<void> {
  const { server, warehouse, tally } = running
  running.isHalted = true
  await publishDisturbed(running, undefined)
  const { tables, rows } = expectedDatabase(warehouse.path, false)
  const shown = await shownRows(server, DATABASE, tables)
  for (const [table, expected] of rows)
    if (JSON.stringify(shown.get(table)) !== JSON.stringify(expected))
      tally.faults.push(`${table} differs from SQLite: ${expected.length} rows expected`)
  tally.compared += 1
  running.isHalted = false
}

// ------------------------------------------------------------------------------------ the reader

interface Reader {
  /** Compares all views with one version of the warehouse. */
  look(): Promise<void>
  /** Looks again and again. @param mayFail whether the server may be away */
  lookUntil(isOver: () => boolean, mayFail: boolean): Promise<void>
}

function createReader(server: ClickHouseServer, tally: KillTally): Reader {
  const newest = { publication: 0, version: -1 }
  const look = async () => {
    const before = await newestPublication(server)
    if (before === 0) return
    const shown = new Map<string, string[]>()
    for (const [relation, columns] of RELATIONS)
      shown.set(relation, (await rowsOf(server, relation, columns)).map(textOf).sort())
    const after = await newestPublication(server)
    if (before < newest.publication || after < before)
      tally.faults.push(`publication ${Math.min(before, after)} was shown after ${newest.publication}`)
    newest.publication = after
    // Another publication became complete between two views.
    if (after !== before) return
    tally.looks += 1
    const version = versionOf(shown)
    if (version < newest.version) tally.faults.push(`version ${version} was shown after ${newest.version}`)
    if (version > newest.version) tally.seen += 1
    newest.version = Math.max(version, newest.version)
    for (const [relation, rows] of contentsAt(version))
      if (JSON.stringify(shown.get(relation)) !== JSON.stringify(rows.map(textOf).sort()))
        tally.faults.push(
          `publication ${before}, version ${version}: ${relation} shows ${shown.get(relation)?.length} rows instead of these ${rows.length}`,
        )
  }
  return {
    look,
    async lookUntil(isOver, mayFail) {
      while (!isOver()) {
        await look().catch(error => {
          if (!mayFail) tally.faults.push(String(error))
        })
        await pause(READ_MS)
      }
    },
  }
}

const READ_MS = 200

async function newestPublication(server: ClickHouseServer): Promise<number> {
  const [exists] = await server.query(
    `SELECT count() FROM system.tables WHERE database = '${DATABASE}' AND name = 'publications'`,
  )
  if (Number(exists?.[0]) === 0) return 0
  const [row] = await server.query(`SELECT max(publication) FROM ${DATABASE}.publications`)
  return Number(row?.[0] ?? 0)
}

const rowsOf = (
  server: ClickHouseServer,
  relation: string,
  columns: readonly string[],
): Promise<unknown[][]> => server.query(`SELECT ${columns.join(', ')} FROM ${DATABASE}.${relation}`)

const textOf = (row: readonly unknown[]): string => JSON.stringify(row)

const versionOf = (shown: ReadonlyMap<string, string[]>): number =>
  versionIn(new Map([['teams', (shown.get('teams') ?? []).map(row => JSON.parse(row))]]))
