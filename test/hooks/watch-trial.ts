import { onTestFinished } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import type { ProxyRules } from '../../src/base/proxies.ts'
import * as kinds from '../../src/config/kinds.ts'
import type { Environment } from '../../src/config/loaded-settings.ts'
import type { HealthProblem } from '../../src/health/problems.ts'
import type { AnnouncedNote } from '../../src/hooks/announcements.ts'
import { type AnnouncedStorage, watchProblems } from '../../src/hooks/watch.ts'
import { virtualClock } from '../api/virtual-clock.ts'

export const START = Date.parse('2026-03-04T12:00:00.000Z')

export const DISK: HealthProblem = {
  id: 'daemon:database-full',
  kind: 'act',
  what: 'The daemon cannot use the database',
  detail: 'The disk is full',
  todo: 'Remove the cause.',
  since: '2026-03-04T11:59:00.000Z',
}

export interface WatchTrialOptions {
  onProblem?: string
  onRecovered?: string
  env?: Environment
  proxies?: ProxyRules
  storage?: AnnouncedStorage
}

/** A database that keeps the announced problems of earlier watches. */
export function storageInMemory(): AnnouncedStorage & { notes: readonly AnnouncedNote[] } {
  const storage = {
    notes: [] as readonly AnnouncedNote[],
    read: () => storage.notes,
    write: async (notes: readonly AnnouncedNote[]) => {
      storage.notes = notes
      return true
    },
  }
  return storage
}

const targetOf = (value: string | undefined) => (value ? kinds.hook.read(value, { cwd: '/' }) : undefined)

/** A watch whose clock stands still, and whose problems the test decides. */
export async function watchTrial(options: WatchTrialOptions) {
  const { onProblem, onRecovered, env = {}, proxies = {}, storage = storageInMemory() } = options
  const clock = virtualClock(START)
  const lines: Record<string, unknown>[] = []
  const log = await createLog({
    level: 'debug',
    stream: { write: (text: string) => lines.push(JSON.parse(text)) },
  })
  const state = { problems: [] as readonly HealthProblem[], looks: 0 }
  const watch = watchProblems({
    clock,
    log,
    env,
    random: () => 0,
    hooks: () => ({ onProblem: targetOf(onProblem), onRecovered: targetOf(onRecovered), waitMinutes: 15 }),
    proxies: () => proxies,
    workspaceId: () => 'acme',
    look: async () => {
      state.looks += 1
      return { at: clock.now(), problems: state.problems, isPartial: false }
    },
    storage,
  })
  onTestFinished(() => watch.close())
  return {
    clock,
    lines,
    watch,
    state,
    /** The number of stored problems. */
    notes: () => storage.read()?.length ?? 0,
    /** Lets this many looks see these problems. */
    async look(problems: readonly HealthProblem[], count = 2) {
      state.problems = problems
      for (let done = 0; done < count; done += 1) await clock.advance(15_000)
    },
  }
}
