import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { itemsOf } from '../../src/simulator/changes/selection.ts'
import type { Fault } from '../../src/simulator/faults/faults.ts'
import { createSimulator, type SimulatorOptions } from '../../src/simulator/server.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { TINY } from '../support/trial.ts'
import { createDraw } from '../torture/draw.ts'
import { createBudget } from './budget.ts'
import { type ClockSpan, createWitness } from './checks.ts'
import { type Deed, drawDeeds } from './deeds.ts'
import { watchHeads } from './heads.ts'
import { createMachine, type Program } from './machine.ts'
import { wrongReports } from './reports.ts'
import { grown, type Sizes } from './rest.ts'
import { digestOf, type Load, traceOf } from './trace.ts'
import { NUDGE, sendWebhook } from './webhook.ts'

/** A life: a workspace, settings, and deeds in time. The same life has the same requests and the same rows each time. */
export interface Life {
  seed: number
  workspace: SimulatorOptions
  resources: readonly ResourceName[]
  pollSeconds: number
  /** The factor of all other intervals. Default 1. */
  intervalScale?: number
  deeds: readonly Deed[]
  /** Days without deeds within which everything must be as the API has it. */
  quietDays: number
  /** The least number of days of rest after the last deed, also when everything is as the API has it before. */
  restDays: number
}

/** What a life has shown. */
export interface Lived {
  /** What was wrong, in the order in which it was seen; at most a few. */
  findings: string[]
  requests: number
  days: number
  /** By day and route. */
  loads: readonly ReadonlyMap<string, Load>[]
  /** The last requests, each as one line. */
  trace: readonly string[]
  /** Of all requests and answers with their times, and of all rows at the end. */
  digests: { requests: string; rows: string }
}

const START = Date.parse('2026-06-30T12:00:00Z')
const HOUR = 3_600_000
const DAY = 24 * HOUR

/** Groups of resources that belong together: a life of few resources is short. */
const GROUPS: readonly [readonly ResourceName[], ...(readonly ResourceName[])[]] = [
  ['messages', 'message_bodies'],
  ['activities', 'messages', 'message_bodies'],
  ['activities', 'meetings', 'transcripts', 'playbooks', 'playbook_results'],
  ['members', 'teams', 'collections', 'activities', 'meetings', 'collection_meetings', 'transcripts'],
  ['crm_objects', 'crm_records', 'crm_record_links'],
  ['access_logs', 'bot_definition', 'integrations', 'members'],
]

export interface LifeShape {
  /** Over which the deeds are spread. */
  days?: number
  deeds?: number
  rest?: number
  /** Seconds between polls. By default they are drawn; a long life has six hours. */
  poll?: number
}

export function lifeOf(seed: number, { days = 2, deeds = 14, rest = 1, poll }: LifeShape = {}): Life {
  const draw = createDraw(seed)
  const resources = draw.pick(GROUPS)
  const messages = 40 + draw.below(80)
  const drawnPoll = draw.pick([1800, 3600, 21_600])
  const pollSeconds = poll ?? (days + rest > LONG_DAYS ? 21_600 : drawnPoll)
  return {
    seed,
    workspace: { ...TINY, messages, seed },
    resources,
    pollSeconds,
    quietDays: MOST_QUIET_DAYS,
    restDays: rest,
    deeds: drawDeeds(draw, { count: deeds, spanMs: days * DAY, resources }).map(deed =>
      poll === undefined ? deed : polledOften(deed, poll),
    ),
  }
}

/**
 * A route that shows a random part of its rows denies some row twice when it is asked often for longer than the time after which a
 * second denial counts. Where no other route shows the row, no rule of two denials can tell that from a deletion, so such an answer
 * is shorter here.
 */
function polledOften(deed: Deed, pollSeconds: number): Deed {
  if ('pollSeconds' in deed) return { ...deed, pollSeconds }
  const isPartial = deed.kind === 'answers' && deed.faults.some(({ kind }) => kind === 'partial')
  return isPartial ? { ...deed, forMs: Math.min(deed.forMs ?? 0, 100_000) } : deed
}

/** In a longer life, lists are polled rarely. */
const LONG_DAYS = 30

/** When the daemon starts again after an exit status. Any other status is a fault. */
const RESTARTS: Readonly<Record<number, number>> = { 69: 10_000, 73: 10_000, 75: 10_000, 77: HOUR }

/** The longest interval of a week, and the time for confirming a deletion that is held back. */
const MOST_QUIET_DAYS = 10
/** A withheld meeting is read again after a quarter of its age, at most 30 days later. Its transcript follows. */
const MOST_WITHHELD_DAYS = 31
const NOT_SHOWN = /^and \d+ more$/
const STILL_WITHHELD = /^meetings \["([^"]+)"\]: access is "withheld", expected "open"$/
/** What did not fit and has no key is resolved at the end of the first round that began after it: at most two rounds. */
const MOST_REJECT_DAYS = 15
/** In this time each key is asked for that is asked for at all. */
const ALL_ASKED_DAYS = 45
const MOST_FINDINGS = 5
/** How often a life without days of rest is looked at once its deeds are over. */
const SHORT_REST_DAYS = 0.25

export async function live(life: Life): Promise<Lived> {
  const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
  const folder = mkdtempSync(join(memory, 'parley-life-'))
  const database = join(folder, 'parley.db')
  // The simulator takes its time from the machine, which needs the simulator's server first.
  const time = { now: () => START }
  const api = createSimulator({
    ...life.workspace,
    compress: false,
    clock: {
      now: () => time.now(),
      elapsed: () => time.now() - START,
      sleep: ms => new Promise(resolve => void setTimeout(resolve, ms)),
    },
  })
  const machine = createMachine({
    seed: life.seed,
    start: START,
    servers: { 'api.example:80': api.server },
    files: [database],
  })
  time.now = machine.now
  const findings: string[] = []
  const find = (...found: readonly string[]) => {
    for (const finding of found.slice(0, MOST_FINDINGS - findings.length))
      findings.push(`${new Date(machine.now()).toISOString()} ${finding}`)
  }
  const budget = createBudget({
    start: START,
    now: machine.now,
    truth: () => api.world.truth(),
    pollSeconds: () => pollSeconds,
    scale: life.intervalScale ?? 1,
  })
  /** Reasons for which nothing can be read. */
  let hindrances = 0
  const hindered = (forMs: number, undo: () => void | Promise<void>) => {
    hindrances += 1
    heads.look()
    later(forMs, () => {
      hindrances -= 1
      return undo()
    })
  }
  const heads = watchHeads({
    resources: life.resources,
    now: machine.now,
    pollSeconds: () => pollSeconds,
    isDisturbed: route =>
      hindrances > 0 ||
      daemon === undefined ||
      isDown() ||
      [...wrong]
        .flat()
        .some(
          (fault, index) =>
            !nature.includes(fault) &&
            (fault.route ?? route) === route &&
            (api.hitCounts()[index] ?? 0) < (fault.atMost ?? Number.POSITIVE_INFINITY),
        ),
    isSaid: resource => witness.isSaid(resource),
    find,
  })
  const trace = traceOf(api.server, {
    start: START,
    now: machine.now,
    allowed: budget.of,
    asked: heads.asked,
    find,
  })
  const witness = createWitness({
    api,
    database,
    resources: life.resources,
    now: machine.now,
    clocks: () => clocks,
    nature: () => nature,
    isPartial: () => [...wrong].flat().some(fault => fault.kind === 'partial' && !nature.includes(fault)),
  })
  const clocks: ClockSpan[] = [{ from: START, offMs: 0 }]
  const setClock = (offMs: number) => {
    machine.setClock(offMs)
    clocks.push({ from: machine.now(), offMs })
  }
  const settingsFile = join(folder, 'parley.toml')
  let { pollSeconds, resources } = life
  const write = () => writeFileSync(settingsFile, settingsText({ ...life, pollSeconds, resources }, folder))
  write()
  writeFileSync(join(folder, 'key'), api.apiKey, { mode: 0o600 })
  writeFileSync(join(folder, 'nudge'), NUDGE.secret, { mode: 0o600 })
  mkdirSync(join(folder, 'snapshots'))
  const env = { PARLEY_CONFIG: settingsFile }

  const undos: { at: number; undo: () => void | Promise<void> }[] = []
  const later = (ms: number, undo: () => void | Promise<void>) => {
    undos.push({ at: machine.now() + ms, undo })
    undos.sort((one, other) => one.at - other.at)
  }
  /** Since when there has been nothing to undo. */
  let calmSince = START
  let daemon: Program | undefined
  const isDown = () => daemon?.status() !== undefined
  const startDaemon = async () => {
    daemon = await machine.start(['daemon'], env, hasWebhooks(life))
  }
  const reload = () => {
    write()
    daemon?.signal('SIGHUP')
  }
  /** As its unit does; what the unit leaves to a person, a person does an hour later. */
  const restart = () => {
    const status = daemon?.status() ?? 0
    const wait = RESTARTS[status]
    if (wait === undefined) throw new Error(`the daemon ended with ${status}: ${daemon?.output.stderr}`)
    daemon = undefined
    budget.happened({ forMs: wait })
    later(wait, startDaemon)
  }
  const end = async (program: Program) => {
    program.signal('SIGTERM')
    await machine.until(() => program.status() !== undefined || program.isKilled())
  }
  /** Locks that last longer than the time between them are one lock. */
  let locks = 0
  let locker: Sqlite | undefined
  const wrong = new Set<readonly Fault[]>()
  /** Those of `wrong` that have no end. */
  const nature: Fault[] = []
  const give = () => api.setFaults([...wrong].flat())

  /** What is to be undone later is put into `undos`. */
  const does: { [K in Deed['kind']]: (deed: Extract<Deed, { kind: K }>) => void | Promise<void> } = {
    change({ change, backMs }) {
      const { ids } = api.apply(change)
      witness.look()
      if (backMs === undefined || !('resource' in change)) return
      later(backMs, () => {
        // The deletion of a meeting or a message has deleted its activity too, hidden or not.
        const items = itemsOf(api.world, change)
        const kept = ids.filter(id => items.state(items.find(id)) !== 'deleted')
        api.apply({ ...change, kind: 'reveal', ids: kept })
        witness.look()
      })
    },
    answers: ({ faults, forMs }) => {
      wrong.add(faults)
      give()
      if (forMs === undefined) {
        nature.push(...faults)
        witness.look()
        return
      }
      later(forMs, () => {
        wrong.delete(faults)
        give()
        witness.look()
      })
    },
    limit: ({ limit, forMs }) => {
      api.setLimit(limit)
      return hindered(forMs, () => api.setLimit({ kind: 'none' }))
    },
    refuse: ({ forMs }) => {
      api.setApiKey('another-key')
      return hindered(forMs, () => api.setApiKey(api.apiKey))
    },
    async kill({ statement, withText, downMs }) {
      const killed = daemon
      if (killed === undefined) return
      killed.kill(statement, withText)
      await machine.until(() => killed.isKilled() || killed.status() !== undefined)
      daemon = undefined
      later(downMs, startDaemon)
    },
    async stop({ downMs }) {
      if (daemon === undefined) return
      await end(daemon)
      daemon = undefined
      later(downMs, startDaemon)
    },
    reload(deed) {
      heads.look()
      if ('pollSeconds' in deed) {
        pollSeconds = deed.pollSeconds
        heads.restart()
      } else {
        resources = deed.resources
        hindered(deed.forMs, () => {
          resources = life.resources
          reload()
        })
      }
      reload()
    },
    suspend({ forMs }) {
      machine.suspend(forMs)
      hindered(0, () => undefined)
    },
    clock: ({ offMs, forMs }) => {
      setClock(offMs)
      return hindered(forMs, () => setClock(0))
    },
    lock({ forMs }) {
      if (!existsSync(database)) return
      if (locks === 0) {
        locker = openSqlite(database)
        locker.exec('BEGIN IMMEDIATE')
      }
      locks += 1
      return hindered(forMs, () => {
        locks -= 1
        if (locks > 0) return
        locker?.exec('COMMIT')
        locker?.close()
      })
    },
    write({ sql }) {
      const other = openSqlite(database)
      other.exec(sql)
      other.close()
    },
    async command({ argv }) {
      const program = await machine.start(argv, env)
      await machine.until(() => program.status() !== undefined)
    },
    async webhook({ about, nth }) {
      const item = [...api.world.truth().items(about)][nth]
      const key = item?.['id'] ?? item?.['meeting_id']
      await sendWebhook(machine, about, key === undefined ? undefined : String(key))
    },
    async backfill({ argv }) {
      if (daemon === undefined) return
      await end(daemon)
      daemon = undefined
      const program = await machine.start(['backfill', ...argv], env)
      await machine.until(() => program.status() !== undefined)
      if (program.status() === 0 && undos.length === 0 && argv.length === 0)
        find(...witness.differences().map(left => `a complete backfill has left: ${left}`))
      await startDaemon()
    },
  }

  /** Advances the clock, and undoes on the way what is due. */
  const passUntil = async (at: number) => {
    for (;;) {
      const undo = undos[0]
      const next = Math.min(at, undo?.at ?? Number.POSITIVE_INFINITY)
      if (machine.now() < next)
        await machine.pass(next - machine.now(), () => isDown() || findings.length > 0)
      heads.look()
      if (findings.length > 0) return
      if (isDown()) restart()
      if (undo !== undefined && undo.at <= machine.now()) {
        undos.shift()
        calmSince = machine.now()
        await undo.undo()
      } else if (machine.now() >= at) return
    }
  }

  const isOk = async () => {
    const check = await machine.start(['status', '--check'], env)
    await machine.until(() => check.status() !== undefined)
    return check.status() === 0
  }

  const pass = async (ms: number) => {
    const until = machine.now() + ms
    while (machine.now() < until) {
      await passUntil(Math.min(until, nextDay(machine.now())))
      find(...witness.lies(await isOk(), undos.length > 0 ? machine.now() : calmSince))
      if (findings.length > 0) return
    }
  }

  try {
    witness.look()
    budget.happened({ isBeginning: true })
    await startDaemon()
    for (const deed of life.deeds) {
      await pass(Math.max(0, START + deed.atMs - machine.now()))
      if (findings.length > 0) break
      budget.happened({
        forMs: lengthOf(deed),
        isBeginning: ['command', 'backfill'].includes(deed.kind),
        isWrong: deed.kind === 'answers' && deed.faults.some(({ kind }) => kind === 'rewrite'),
      })
      await does[deed.kind](deed as never)
    }
    while (findings.length === 0 && undos[0] !== undefined)
      await pass(Math.max(0, (undos.at(-1)?.at ?? 0) - machine.now()) + 1)
    const rest: Sizes[] = []
    const step = life.restDays < 1 ? SHORT_REST_DAYS : 1
    for (let day = step; findings.length === 0; day += step) {
      const before = trace.count()
      await pass(step * DAY)
      rest.push(witness.sizes(trace.count() - before))
      const left = [...witness.differences(), ...witness.unwell()]
      const withheld = left.flatMap(one => STILL_WITHHELD.exec(one)?.[1] ?? [])
      const boundOf = (one: string) => {
        if (one.startsWith('sync_rejects:')) return MOST_REJECT_DAYS
        const isOfWithheld = withheld.some(key => one.includes(key) || NOT_SHOWN.test(one))
        return isOfWithheld ? MOST_WITHHELD_DAYS : life.quietDays
      }
      find(...left.filter(one => day >= boundOf(one)))
      if (left.length === 0 && day >= life.restDays) break
    }
    find(...grown(rest), ...(life.restDays >= ALL_ASKED_DAYS ? witness.unnamed() : []))
    if (findings.length === 0) find(...(await wrongReports({ database, env, now: () => machine.now() })))
  } catch (error) {
    find(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
  const days = (machine.now() - START) / DAY
  try {
    return {
      findings,
      requests: trace.count(),
      days,
      loads: trace.loads(),
      trace: trace.last(),
      digests: { requests: trace.digest(), rows: digestOf(folder, database) },
    }
  } finally {
    machine.close()
    rmSync(folder, { recursive: true })
  }
}

const lengthOf = (deed: Deed) => ('forMs' in deed ? (deed.forMs ?? 0) : 'downMs' in deed ? deed.downMs : 0)

const nextDay = (now: number) => START + (Math.floor((now - START) / DAY) + 1) * DAY

const hasWebhooks = ({ deeds }: Pick<Life, 'deeds'>) => deeds.some(({ kind }) => kind === 'webhook')

const settingsText = (
  { workspace, resources, pollSeconds, intervalScale = 1, deeds }: Life,
  folder: string,
) => `
[api]
base_url = "http://api.example"
workspace_id = "${workspace.workspaceId ?? 'demo-workspace'}"
key_file = "${join(folder, 'key')}"

[database]
path = "${join(folder, 'parley.db')}"

[http]
listen = "${hasWebhooks({ deeds }) ? NUDGE.listen : 'off'}"
nudge_secret_file = "${join(folder, 'nudge')}"

[sync]
poll_seconds = ${pollSeconds}
interval_scale = ${intervalScale}
resources = ${JSON.stringify(resources)}
`
