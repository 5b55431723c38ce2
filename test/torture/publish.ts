import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { drawChange } from '../daemon/lives/changes.ts'
import { type Ended, newFolder } from '../support/parley-process.ts'
import { CLOCK_TABLE, expectedTables } from '../support/published-cells.ts'
import { startTrial, TINY, type Trial } from '../support/trial.ts'
import { createDraw, type Draw } from './draw.ts'
import {
  type Contents,
  digestOf,
  type Lake,
  type LakeTable,
  openLake,
  type Publication,
  VIEWS,
  type View,
} from './lake.ts'

/**
 * Publishes a warehouse again and again while a daemon fills it from a workspace that changes, disturbs the
 * publications, and reads the target with `lake.ts`:
 * `npx tsx test/torture/publish.ts [--runs 1] [--seed 1] [--publications 50] [--kills 10] [--keep 5]`.
 *
 * `--kills N`: this many publications of a run are killed at a random moment. `--full`, `--refused`, `--halted`: so many
 * publications meet a limit on the size of files, a folder without permissions, or are halted while the target is read.
 * After each publication, complete or not, the newest one is never older than before, all files of the readable ones are there
 * with their stated size and rows, and no row is without its owner. After some complete ones the daemon halts, and every value
 * equals SQLite's, except those of `sync_status`. When root starts it, `parley publish` runs as nobody, who must be able to read
 * `dist/`: root may write everywhere. The exit status is 1 when a check failed.
 */

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    publications: { type: 'string', default: '50' },
    kills: { type: 'string', default: '10' },
    full: { type: 'string', default: '0' },
    refused: { type: 'string', default: '0' },
    halted: { type: 'string', default: '0' },
    keep: { type: 'string', default: '5' },
  },
})
const keep = Number(values.keep)

const line = (said: string): boolean => process.stdout.write(`${said}\n`)

const DISTURBANCES = ['kills', 'full', 'refused', 'halted'] as const
type Disturbance = (typeof DISTURBANCES)[number]

interface Run {
  trial: Trial
  target: string
  lake: Lake
  draw: Draw
  /** The newest publication that the reader of each view has seen. */
  newest: Record<View, number>
  /** How long a publication takes, in ms. */
  usualMs: number
  tally: Tally
}

interface Tally {
  passed: number
  failed: number
  /** Publications that ended with status 0. */
  complete: number
  /** Complete publications whose contents were compared with SQLite. */
  compared: number
  /** Disturbed publications, and how many of them did not complete. */
  disturbed: Record<Disturbance, number>
  interrupted: Record<Disturbance, number>
}

const none = (): Record<Disturbance, number> => ({ kills: 0, full: 0, refused: 0, halted: 0 })

// ------------------------------------------------------------------------------------- one run

/** Root may write in every folder, so the publications of root run as this user. */
const NOBODY = 65534
const isRoot = process.getuid?.() === 0

async function oneRun(seed: number, tally: Tally): Promise<void> {
  const draw = createDraw(seed)
  const trial = await startTrial({ ...TINY, seed, now: 'real' }, { PARLEY_DATABASE_MODE: '0644' })
  const target = join(newFolder(), 'lake')
  mkdirSync(target)
  openFolders(trial, target)
  const run: Run = {
    trial,
    target,
    lake: openLake(target),
    draw,
    newest: { hint: 0, highest: 0 },
    usualMs: 0,
    tally,
  }
  await trial.backfill()
  const daemon = trial.startDaemon({
    PARLEY_HTTP_LISTEN: 'off',
    PARLEY_SYNC_POLL_SECONDS: '1',
    PARLEY_SYNC_INTERVAL_SCALE: '0.0002',
    PARLEY_LOG_LEVEL: 'error',
  })
  const before = tally.failed
  try {
    for (const disturbance of plan(draw)) {
      await trial.simulator.change(drawChange(draw))
      const isCompared = disturbance === undefined && draw.below(2) === 0
      // The writer halts, so that the publication shows the same instant as the comparison.
      if (isCompared) signal(daemon.pid, 'SIGSTOP')
      const faults = await attempt(run, disturbance, isCompared).catch(error => [
        String(error?.stack ?? error),
      ])
      if (isCompared) signal(daemon.pid, 'SIGCONT')
      tally[faults.length === 0 ? 'passed' : 'failed'] += 1
      if (faults.length > 0)
        line([`seed ${seed}, ${disturbance ?? 'undisturbed'}:`, ...faults.slice(0, 5)].join('\n    '))
      if (tally.failed - before >= MOST_FAILURES) break
    }
  } finally {
    daemon.kill('SIGKILL')
    await daemon.ended
    await trial.close()
  }
  if (tally.failed > before) line(`seed ${seed}: kept ${target} and ${trial.database}`)
  else for (const path of [target, trial.database]) rmSync(dirname(path), { recursive: true })
}

/** A run with this many failures ends. */
const MOST_FAILURES = 5

/** Which publications are disturbed, in a random order. The last one is not. */
function plan(draw: Draw): (Disturbance | undefined)[] {
  const disturbed: (Disturbance | undefined)[] = DISTURBANCES.flatMap(name =>
    Array<Disturbance>(Number(values[name])).fill(name),
  )
  const calm = Math.max(1, Number(values.publications) - disturbed.length)
  const all = [...disturbed, ...Array<undefined>(calm - 1).fill(undefined)]
  for (let last = all.length - 1; last > 0; last--) {
    const other = draw.below(last + 1)
    ;[all[last], all[other]] = [all[other], all[last]]
  }
  // The first one tells how long a publication takes.
  return [undefined, ...all, undefined]
}

function openFolders(trial: Trial, target: string): void {
  chmodSync(dirname(trial.database), 0o755)
  chmodSync(dirname(target), 0o755)
  if (isRoot) chownSync(target, NOBODY, NOBODY)
}

function signal(pid: number | undefined, name: NodeJS.Signals): void {
  if (pid !== undefined) process.kill(pid, name)
}

// ---------------------------------------------------------------------------- one publication

const PROGRAM = process.env['PARLEY_PROGRAM'] ?? new URL('../../dist/cli.js', import.meta.url).pathname

interface Publishing {
  child: ChildProcess
  ended: Promise<Ended>
}

function publish({ trial, target }: Run, limits: readonly string[] = []): Publishing {
  const [command = PROGRAM, ...args] = [
    ...limits,
    PROGRAM,
    'publish',
    target,
    '--json',
    '--keep',
    String(keep),
  ]
  const child = spawn(command, [...args, '--database', trial.database], {
    cwd: '/',
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(isRoot && { uid: NOBODY, gid: NOBODY }),
  })
  const status = new Promise<number | null>(resolve => child.on('close', resolve))
  const ended = Promise.all([status, text(child.stdout), text(child.stderr)]).then(
    ([code, stdout, stderr]) => ({ status: code, stdout, stderr }),
  )
  return { child, ended }
}

/** Returns what is wrong. */
async function attempt(
  run: Run,
  disturbance: Disturbance | undefined,
  isCompared: boolean,
): Promise<string[]> {
  const began = performance.now()
  const faults: string[] = []
  const { status, stderr, stdout } = await disturbed(run, disturbance, faults)
  const { tally } = run
  if (disturbance !== undefined) tally.disturbed[disturbance] += 1
  if (status === 0) {
    tally.complete += 1
    if (disturbance === undefined || disturbance === 'kills') run.usualMs = performance.now() - began
  } else if (isCompared && status === LOCKED) {
    // The writer was halted while it held a lock that readers need.
    return check(run, undefined)
  } else if (disturbance === undefined || !isExpected(disturbance, status)) {
    faults.push(`it ended with ${status}: ${stderr}`)
  } else {
    tally.interrupted[disturbance] += 1
  }
  faults.push(...(await check(run, status === 0 ? JSON.parse(stdout).publication : undefined)))
  if (isCompared) {
    tally.compared += 1
    faults.push(...(await compare(run)))
  }
  return faults
}

const LOCKED = 75

/** A publication that cannot write ends with 73. */
const isExpected = (disturbance: Disturbance, status: number | null): boolean =>
  disturbance === 'kills' ? status === null : status === 73 && disturbance !== 'halted'

async function disturbed(run: Run, disturbance: Disturbance | undefined, faults: string[]): Promise<Ended> {
  const { draw, usualMs, target } = run
  // Node needs the first part of this time to start.
  const moment = usualMs * (0.25 + draw.below(75) / 100)
  switch (disturbance) {
    case undefined:
      return publish(run).ended
    case 'kills': {
      const { child, ended } = publish(run)
      const timer = setTimeout(() => child.kill('SIGKILL'), moment)
      const end = await ended
      clearTimeout(timer)
      return end
    }
    case 'full':
      return publish(run, ['prlimit', `--fsize=${draw.below(40_000)}`]).ended
    case 'refused': {
      const folder = refusedFolder(run)
      const publishing = publish(run)
      await Promise.race([pause(moment / 2), publishing.ended])
      chmodSync(folder, 0o500)
      const end = await publishing.ended
      chmodSync(folder, 0o700)
      return end
    }
    case 'halted': {
      const { child, ended } = publish(run)
      let isOver = false
      void ended.then(() => {
        isOver = true
      })
      for (let halt = 0; halt < 3 && !isOver; halt++) {
        await Promise.race([pause(moment / 3), ended])
        child.kill('SIGSTOP')
        if (existsSync(target)) faults.push(...(await check(run, undefined)))
        child.kill('SIGCONT')
      }
      return ended
    }
  }
}

const REFUSED = [
  '',
  'meetings',
  'messages/metadata',
  'messages/data',
  'publications/metadata',
  'sync_runs/data',
]

function refusedFolder({ draw, target }: Run): string {
  const places = REFUSED.map(place => join(target, place)).filter(existsSync)
  return places[draw.below(places.length)] ?? target
}

// ----------------------------------------------------------------------------------- the checks

/** Tables whose rows another table owns, with the columns that name the owner. */
const OWNERS: readonly [child: string, column: string, owner: string, key: string][] = [
  ['transcript_entries', 'meeting_id', 'meetings', 'id'],
  ['meeting_attendees', 'meeting_id', 'meetings', 'id'],
  ['meeting_chapters', 'meeting_id', 'meetings', 'id'],
  ['message_participants', 'header_message_id', 'messages', 'header_message_id'],
  ['message_copy_participants', 'message_id', 'message_copies', 'id'],
  ['activity_links', 'activity_id', 'activities', 'id'],
]

/** @param complete the publication that has just ended with success */
async function check(run: Run, complete: number | undefined): Promise<string[]> {
  const faults: string[] = []
  for (const view of VIEWS) {
    const tables = run.lake.open(view)
    for (const table of tables.values()) await run.lake.files(table, table.metadata['current-snapshot-id'])
    const publications = await run.lake.publications(tables)
    const newest = publications.at(-1)?.publication ?? 0
    if (newest < run.newest[view])
      faults.push(`${view}: the newest publication went from ${run.newest[view]} to ${newest}`)
    run.newest[view] = Math.max(run.newest[view], newest)
    if (complete !== undefined && newest !== complete)
      faults.push(`${view}: the newest publication is ${newest}, and ${complete} was announced`)
    // While the next publication is written, the oldest may already be gone.
    const readable = complete === undefined ? Math.max(1, keep - 1) : keep
    for (const publication of publications.slice(-readable))
      faults.push(...(await checkPublication(run, tables, publication)).map(fault => `${view}: ${fault}`))
  }
  return faults
}

async function checkPublication(
  { lake }: Run,
  tables: ReadonlyMap<string, LakeTable>,
  { publication, snapshots }: Publication,
): Promise<string[]> {
  const faults: string[] = []
  const at = async <Result>(
    folder: string,
    look: (table: LakeTable, snapshot: number) => Promise<Result>,
  ) => {
    const [table, snapshot] = [tables.get(folder), snapshots[folder]]
    if (table && snapshot !== undefined) return look(table, snapshot)
    throw new Error(`publication ${publication} has no table ${folder}`)
  }
  try {
    for (const folder of Object.keys(snapshots)) await at(folder, lake.files)
    for (const [child, column, owner, key] of OWNERS) {
      const owners = await at(owner, (table, snapshot) => lake.values(table, snapshot, key))
      const named = await at(child, (table, snapshot) => lake.values(table, snapshot, column))
      const alone = [...named].filter(value => !owners.has(value))
      if (alone.length > 0) faults.push(`publication ${publication}: ${child} without ${owner}: ${alone[0]}`)
    }
  } catch (error) {
    faults.push(`publication ${publication}: ${error instanceof Error ? error.message : error}`)
  }
  return faults
}

/** Compares the newest publication with SQLite. */
async function compare({ lake, trial }: Run): Promise<string[]> {
  const tables = lake.open('hint')
  const newest = (await lake.publications(tables)).at(-1)
  const expected = warehouseContents(trial.database)
  const faults: string[] = []
  for (const [folder, contents] of expected) {
    if (folder === CLOCK_TABLE) continue
    const [table, snapshot] = [tables.get(folder), newest?.snapshots[folder]]
    const found = table && snapshot !== undefined ? await lake.contents(table, snapshot) : undefined
    if (found?.digest !== contents.digest || found.rows !== contents.rows)
      faults.push(`${folder} differs from SQLite: ${contents.rows} rows expected, ${found?.rows} found`)
  }
  return faults
}

function warehouseContents(database: string): Map<string, Contents> {
  const db = openSqlite(database, { readonly: true })
  try {
    return new Map(expectedTables(db).map(({ folder, rows }) => [folder, digestOf(rows())]))
  } finally {
    db.close()
  }
}

// ----------------------------------------------------------------------------------------- all

const tally: Tally = {
  passed: 0,
  failed: 0,
  complete: 0,
  compared: 0,
  disturbed: none(),
  interrupted: none(),
}
for (let run = 0; run < Number(values.runs); run++) {
  const seed = Number(values.seed) + run
  await oneRun(seed, tally)
  const disturbances = DISTURBANCES.filter(name => tally.disturbed[name] > 0)
    .map(name => `${name} ${tally.disturbed[name]} (${tally.interrupted[name]} not complete)`)
    .join(', ')
  line(
    `seed ${seed}: so far ${tally.complete} complete, ${tally.compared} compared with SQLite, ${disturbances}`,
  )
}
line(`${tally.passed} passed, ${tally.failed} failed`)
process.exitCode = tally.failed > 0 ? 1 : 0
