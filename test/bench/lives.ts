import type { Profiler } from 'node:inspector'
import { Session } from 'node:inspector/promises'
import { lifeOf, live } from '../simulation/life.ts'

/** What simulated lives cost in processor time, by the part of the program in which it is spent. */
export interface LivesCost {
  lives: number
  requests: number
  /** Simulated. */
  days: number
  cpuMs: number
  /** Processor time in ms by part, from samples; about `cpuMs` in all. */
  parts: Readonly<Record<string, number>>
  /** Processor time in ms of one day in which nothing changes, of a life with polls of six hours. */
  stillDayMs: number
}

/** By the address of the code: the first that fits. */
const PARTS: readonly (readonly [part: string, at: RegExp])[] = [
  ['SQLite, and the count of its statements', /better-sqlite3|test\/simulation\/machine\.ts/],
  ['the clock, the network and the checks of the simulation', /fake-timers|test\//],
  ["the simulator's answers", /src\/simulator\//],
  ['parley', /src\//],
  ['HTTP (undici)', /undici/],
  ['other libraries', /node_modules/],
]
const NODE = 'Node, and collecting garbage'

const STILL_DAYS = 10

export async function measureLives(lives: number): Promise<LivesCost> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.start')
  const began = process.cpuUsage()
  const sum = { requests: 0, days: 0 }
  for (let seed = 1; seed <= lives; seed += 1) {
    const { requests, days } = await live(lifeOf(seed))
    sum.requests += requests
    sum.days += days
  }
  const cpuMs = spentMs(began)
  const { profile } = await session.post('Profiler.stop')
  session.disconnect()
  return { lives, ...sum, cpuMs, parts: partsOf(profile), stillDayMs: await stillDay() }
}

async function stillDay(): Promise<number> {
  const cost = async (rest: number) => {
    const began = process.cpuUsage()
    await live({ ...lifeOf(3, { days: 0, deeds: 0, rest }), pollSeconds: 21_600 })
    return spentMs(began)
  }
  return ((await cost(STILL_DAYS + 1)) - (await cost(1))) / STILL_DAYS
}

function spentMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1000
}

function partsOf({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Record<string, number> {
  const partOf = new Map(
    nodes.map(({ id, callFrame: { functionName, url } }) => [
      id,
      functionName === '(idle)' ? undefined : (PARTS.find(([, at]) => at.test(url))?.[0] ?? NODE),
    ]),
  )
  const spent: Record<string, number> = {}
  samples.forEach((id, index) => {
    const part = partOf.get(id)
    if (part !== undefined) spent[part] = (spent[part] ?? 0) + (timeDeltas[index] ?? 0) / 1000
  })
  return spent
}

export function livesTable({ lives, requests, days, cpuMs, parts, stillDayMs }: LivesCost): string {
  const row = (name: string, ms: number, share: string) => `| ${name} | ${ms.toFixed(2)} | ${share} |`
  const all = Object.values(parts).reduce((sum, ms) => sum + ms, 0)
  return [
    '| part | ms of processor time a request | share |',
    '| --- | ---: | ---: |',
    ...Object.entries(parts)
      .sort(([, one], [, other]) => other - one)
      .map(([part, ms]) => row(part, (ms / all) * (cpuMs / requests), `${Math.round((100 * ms) / all)} %`)),
    row('all', cpuMs / requests, '100 %'),
    '',
    `${lives} lives of ${days.toFixed(1)} days in all made ${requests} requests: ${((60_000 * lives) / cpuMs).toFixed(1)} lives a minute of processor time. A day in which nothing changes costs ${Math.round(stillDayMs)} ms.`,
  ].join('\n')
}
