import { join } from 'node:path'
import type { Simulator } from '../../../src/simulator/server.ts'
import { TRUTH_KINDS, type TruthKind } from '../../../src/simulator/world/truth.ts'
import { openSqlite } from '../../../src/store/database/sqlite.ts'
import { parleyProcess } from '../../cli/parley.ts'
import { fieldsOf, parseExact } from '../../support/exact-json.ts'
import { newFolder } from '../../support/parley-process.ts'
import { readTruth, type Truth } from '../../support/truth.ts'
import { type Read, worldOf } from './published-world.ts'
import { SETTINGS } from './settings.ts'
import { READS, startWorkspace } from './workspace.ts'
import type { FormerMember, World } from './world-rows.ts'

/** The warehouse that parley filled in these reads, and the same world without it. */
export interface FirstWeek {
  file: string
  world: World
  /** What the API publishes at the last read. */
  truth: Truth
}

/** The same for all files of tests in this process, which only read it. */
export function firstWeek(): Promise<FirstWeek> {
  filled ??= fillWarehouse()
  return filled
}

let filled: Promise<FirstWeek> | undefined

async function fillWarehouse(): Promise<FirstWeek> {
  const file = join(newFolder(), 'first-week.db')
  const reads = await readWorkspace((simulator, at) => backfill({ simulator, file, at }))
  return { file, world: worldOf(reads, formerMembers(file)), truth: (reads.at(-1) as Read).truth }
}

/** The world of another run of the workspace, without a warehouse. */
export async function worldAgain(former: readonly FormerMember[]): Promise<World> {
  return worldOf(await readWorkspace(async () => undefined), former)
}

async function readWorkspace(fill: (simulator: Simulator, at: string) => Promise<void>): Promise<Read[]> {
  const { simulator, passUntil } = await startWorkspace()
  try {
    const reads: Read[] = []
    for (const at of READS) {
      passUntil(at)
      await fill(simulator, at)
      const kinds = at === READS.at(-1) ? TRUTH_KINDS : (['crm_records'] as const)
      reads.push({ at: new Date(at).toISOString(), truth: await truthOf(simulator, kinds) })
    }
    return reads
  } finally {
    await simulator.close()
  }
}

const PAST_CLOCK = new URL('../../../dist/simulator/past-clock.js', import.meta.url)

/** What changes from week to week. */
const BRIEF = ['--only', 'members,teams,activities,messages,crm_objects,crm_records']
/** Confirms a deletion after half a second. */
const INTERVAL_SCALE = '0.004'
const UNFINISHED = 75

/** The settings of the company, as parley takes them. */
const REPORTING = {
  PARLEY_REPORTING_TIME_ZONE: SETTINGS.timeZone,
  PARLEY_REPORTING_FISCAL_YEAR_START: String(SETTINGS.fiscalYearStartMonth),
  PARLEY_REPORTING_PARTNER_DOMAINS: SETTINGS.partnerDomains.join(','),
  PARLEY_REPORTING_CURRENCY: SETTINGS.reportingCurrency,
  PARLEY_REPORTING_RATES: Object.entries(SETTINGS.rates)
    .map(([code, rate]) => `${code}=${rate}`)
    .join(','),
  PARLEY_CRM_RENEWAL_PIPELINES: SETTINGS.renewalPipelines.join(','),
}

interface Backfill {
  simulator: Simulator
  file: string
  at: string
}

/** A backfill by a process whose clock is that of the workspace. One that ends unfinished is run again. */
async function backfill({ simulator, file, at }: Backfill): Promise<void> {
  const isBrief = READS.slice(1, -2).some(brief => brief === at)
  const run = () =>
    parleyProcess(['backfill', '--database', file, ...(isBrief ? BRIEF : [])], {
      env: {
        NODE_OPTIONS: `--import=${PAST_CLOCK}?ms=${Date.now() - Date.parse(at)}`,
        PARLEY_BASE_URL: simulator.url,
        PARLEY_API_KEY: simulator.apiKey,
        PARLEY_WORKSPACE_ID: simulator.workspaceId,
        PARLEY_SYNC_INTERVAL_SCALE: INTERVAL_SCALE,
        ...REPORTING,
      },
    })
  const first = await run()
  const { status, stderr } = first.status === UNFINISHED ? await run() : first
  if (status !== 0) throw new Error(`The backfill of ${at} ended with ${status}: ${stderr.slice(-3000)}`)
}

function truthOf({ world }: Simulator, kinds: readonly TruthKind[]): Promise<Truth> {
  const truth = world.truth()
  return readTruth({
    truth: async kind =>
      kinds.includes(kind) ? [...truth.lines(kind)].map(line => fieldsOf(parseExact(line))) : [],
  })
}

function formerMembers(file: string): FormerMember[] {
  const db = openSqlite(file, { readonly: true })
  try {
    const sql = 'SELECT id, name, email FROM members WHERE _deleted_at IS NOT NULL ORDER BY id'
    return db.prepare(sql).all() as FormerMember[]
  } finally {
    db.close()
  }
}
