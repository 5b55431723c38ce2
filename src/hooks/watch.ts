import { type Clock, MINUTE_MS, SECOND_MS } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { ProxyRules } from '../base/proxies.ts'
import type { HookTarget } from '../config/kinds.ts'
import type { Settings } from '../config/loaded-settings.ts'
import type { SettingKey } from '../config/settings.ts'
import type { HealthProblem } from '../health/problems.ts'
import {
  type AnnouncedNote,
  afterCall,
  announcedNotes,
  announcedProblem,
  callsAfter,
  type DueCall,
  type HookEvent,
  type ProblemLook,
  type WatchedProblem,
  withStored,
} from './announcements.ts'
import { type HookCall, payloadOf } from './call.ts'
import { type CommandDeps, runHookCommand } from './hook-command.ts'
import { postWebhook } from './webhook.ts'

/** Looks for problems and calls someone about them, as `announcements.ts` decides. The watch outlives the sessions. */
export type HookWatch = ReturnType<typeof watchProblems>

/** Where the announced problems are stored, so that they are not announced again after a restart. */
export interface AnnouncedStorage {
  /** Undefined while the database cannot be read. */
  read(): readonly AnnouncedNote[] | undefined
  /** Resolves to false when the database cannot be written. Never rejects. */
  write(notes: readonly AnnouncedNote[]): Promise<boolean>
}

export interface HookWatchDeps extends CommandDeps {
  clock: Clock
  log: Log
  /** The settings now: a reload may change them. */
  hooks(): Settings['hooks']
  proxies(): ProxyRules
  workspaceId(): string
  /** Undefined when nothing is known at the moment. */
  look(): Promise<ProblemLook | undefined>
  storage: AnnouncedStorage
  random?(): number
}

/** The log lines of a call that has succeeded, and of one that is not tried again. */
const CALLED = 'Called a hook'
const GIVEN_UP = 'A hook failed; this call is given up'

/**
 * Pause between two looks at the problems while a hook is set. Without a hook, the watch checks each minute whether a
 * reload has set one.
 */
const LOOK_MS = 15 * SECOND_MS
const END_LIMIT_MS = 10 * SECOND_MS
/** How many calls are under way at a time. */
const MOST_AT_ONCE = 5
/** How long calls may still take when the watch is closed. */
const GRACE_MS = SECOND_MS

const SETTINGS = {
  problem: 'hooks.on_problem',
  recovered: 'hooks.on_recovered',
} as const satisfies Record<HookEvent, SettingKey>

export function watchProblems(deps: HookWatchDeps) {
  const { clock, log, hooks, look, random = Math.random } = deps
  const memory = createMemory(deps.storage, clock)
  const running = new Set<Promise<void>>()
  const closing = new AbortController()
  const interrupting = new AbortController()
  void lookRepeatedly()

  function hasHooks(): boolean {
    const { onProblem, onRecovered } = hooks()
    return onProblem !== undefined || onRecovered !== undefined
  }

  const targetOf = (event: HookEvent) => (event === 'problem' ? hooks().onProblem : hooks().onRecovered)

  function send(target: HookTarget, call: HookCall, signal: AbortSignal): Promise<string | undefined> {
    const payload = payloadOf(call)
    return target.by === 'command'
      ? runHookCommand(target.command, payload, { ...deps, signal })
      : postWebhook(target.url, payload, { clock, proxies: deps.proxies(), signal })
  }

  async function lookRepeatedly(): Promise<void> {
    let hasFailed = false
    for (;;) {
      await clock.sleep(hasHooks() ? LOOK_MS : MINUTE_MS, closing.signal)
      if (closing.signal.aborted) return
      if (!hasHooks()) continue
      try {
        const seen = await look()
        if (closing.signal.aborted) return
        if (seen) act(seen, hooks().waitMinutes * MINUTE_MS)
        hasFailed = false
      } catch (error) {
        if (!hasFailed && !closing.signal.aborted)
          log.warn('Failed to look for problems that a hook is called for', { error })
        hasFailed = true
      }
    }
  }

  function act(seen: ProblemLook, waitMs: number): void {
    memory.load()
    const { calls, next } = callsAfter(memory.watched(), seen, { waitMs, room: MOST_AT_ONCE - running.size })
    memory.update(next)
    for (const due of calls) {
      const call = makeCall(due, seen.at)
      running.add(call)
      void call.finally(() => running.delete(call))
    }
  }

  /** Makes one try of a call. */
  async function makeCall({ event, problem }: DueCall, at: number): Promise<void> {
    const target = targetOf(event)
    const lastedMs = Math.max(0, at - Date.parse(problem.since))
    const call = { event, problem, workspaceId: deps.workspaceId(), lastedMs }
    const reason = target && (await send(target, call, interrupting.signal))
    if (reason !== undefined && closing.signal.aborted) return
    const isHeard = reason === undefined
    const others = memory.watched().filter(({ id }) => id !== problem.id)
    const current = memory.watched().find(({ id }) => id === problem.id) ?? problem
    const ended = afterCall({ problem: current, isHeard, now: clock.now(), random })
    memory.update(ended.next ? [...others, ended.next] : others)
    if (target === undefined) return
    const about = { setting: SETTINGS[event], problem: problem.id }
    if (isHeard) return log.info(CALLED, about)
    const failure = { ...about, reason, attempt: ended.tries }
    if (ended.waitMs === undefined) log.warn(GIVEN_UP, failure)
    else log.warn('A hook failed; it is called again', { ...failure, wait_ms: ended.waitMs })
  }

  return {
    /**
     * Ends the looks and calls someone about the end of this process. Makes one try, which takes at most 10 s and ends
     * when the signal is aborted. Never rejects.
     */
    async callAtEnd(problem: HealthProblem, signal: AbortSignal) {
      closing.abort()
      const target = hooks().onProblem
      if (target === undefined) return
      const over = new AbortController()
      const limit = new AbortController()
      void clock.sleep(END_LIMIT_MS, over.signal).then(() => limit.abort())
      const ended = announcedProblem(problem, clock.now())
      const call = { event: 'problem', problem: ended, workspaceId: deps.workspaceId(), lastedMs: 0 } as const
      const reason = await send(target, call, AbortSignal.any([signal, limit.signal]))
      over.abort()
      memory.load()
      const others = memory.watched().filter(({ id }) => id !== ended.id)
      const about = { setting: SETTINGS.problem, problem: ended.id }
      if (reason === undefined) {
        log.info(CALLED, about)
        memory.update([...others, ended])
      } else log.warn(GIVEN_UP, { ...about, reason })
    },
    /** Ends the looks, and waits for at most about a second for calls that run. */
    async close() {
      closing.abort()
      const all = Promise.all(running)
      const over = new AbortController()
      await Promise.race([all.finally(() => over.abort()), clock.sleep(GRACE_MS, over.signal)])
      interrupting.abort()
      await all
      await memory.saved()
    },
  }
}

/** The watched problems. Those that were announced are stored as soon as the database can be written. */
function createMemory({ read, write }: AnnouncedStorage, clock: Clock) {
  let watched: readonly WatchedProblem[] = []
  let isLoaded = false
  let stored = '[]'
  let saving: Promise<void> | undefined

  /** Writes nothing before the stored problems are known, since the write would remove them. */
  async function save(): Promise<void> {
    while (isLoaded) {
      const notes = announcedNotes(watched)
      const text = JSON.stringify(notes)
      if (text === stored || !(await write(notes))) return
      stored = text
    }
  }
  const startSaving = () => {
    saving ??= save().finally(() => {
      saving = undefined
    })
    return saving
  }
  return {
    watched: () => watched,
    update(next: readonly WatchedProblem[]) {
      watched = next
      void startSaving()
    },
    /** Reads the stored problems, once the database can be read. */
    load() {
      const notes = isLoaded ? undefined : read()
      if (notes === undefined) return
      isLoaded = true
      stored = JSON.stringify(notes)
      watched = withStored(watched, notes, clock.now())
    },
    /** Resolves when no write is under way, after one more try to store what is not stored yet. */
    saved: startSaving,
  }
}
