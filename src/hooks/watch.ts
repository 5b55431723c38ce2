import { type Clock, MINUTE_MS, SECOND_MS } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { ProxyRules } from '../base/proxies.ts'
import type { HookTarget } from '../config/kinds.ts'
import type { Settings } from '../config/load-settings.ts'
import type { HealthProblem } from '../health/problems.ts'
import {
  type AnnouncedNote,
  afterDelivery,
  announcedNotes,
  announcedProblem,
  announcementsAfter,
  type ProblemLook,
  type WatchedProblem,
  withStored,
} from './announcements.ts'
import { type HookCall, payloadOf } from './call.ts'
import { CALLED, createDeliveries, type Deliveries } from './deliver.ts'
import { type CommandDeps, runHookCommand } from './hook-command.ts'
import { postWebhook } from './webhook.ts'

/** Looks for problems and calls someone about them, as `announcements.ts` decides. It outlives the sessions. */
export interface HookWatch {
  /**
   * Ends the looks and calls someone about the end of this process. Makes one try, which takes at most 10 s and ends
   * when the signal is aborted. Never rejects.
   */
  callAtEnd(problem: HealthProblem, signal: AbortSignal): Promise<void>
  /** Ends the looks, and waits for at most about a second for calls that run. */
  close(): Promise<void>
}

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

/** While there is a hook. A reload may bring one. */
const LOOK_MS = 15 * SECOND_MS
const END_LIMIT_MS = 10 * SECOND_MS

export function watchProblems(deps: HookWatchDeps): HookWatch {
  const { clock, log, hooks, look, random = Math.random } = deps
  const memory = createMemory(deps.storage, clock)
  const deliveries = createDeliveries({
    clock,
    log,
    random,
    targetOf: event => (event === 'problem' ? hooks().onProblem : hooks().onRecovered),
    send,
    onEnd: (id, end) => memory.update(afterDelivery(memory.watched(), id, end)),
  })
  const closing = new AbortController()
  void lookRepeatedly()

  function hasHooks(): boolean {
    const { onProblem, onRecovered } = hooks()
    return onProblem !== undefined || onRecovered !== undefined
  }

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
    const step = announcementsAfter(memory.watched(), seen, { waitMs, room: deliveries.room() })
    memory.update(step.next)
    for (const id of step.withdraw) deliveries.withdraw(id)
    const workspaceId = deps.workspaceId()
    beginCalls(deliveries, step.announce, { event: 'problem', workspaceId, at: seen.at })
    beginCalls(deliveries, step.recovered, { event: 'recovered', workspaceId, at: seen.at })
  }

  return {
    async callAtEnd(problem, signal) {
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
      const setting = 'hooks.on_problem'
      if (reason === undefined) {
        log.info(CALLED, { setting, problem: ended.id })
        memory.update([...others, ended])
      } else log.warn('A hook failed; this call is given up', { setting, reason })
    },
    async close() {
      closing.abort()
      await deliveries.close()
      await memory.saved()
    },
  }
}

function beginCalls(
  deliveries: Deliveries,
  problems: readonly WatchedProblem[],
  { event, workspaceId, at }: Pick<HookCall, 'event' | 'workspaceId'> & { at: number },
): void {
  for (const problem of problems) {
    const lastedMs = Math.max(0, at - Date.parse(problem.since))
    deliveries.begin({ event, problem, workspaceId, lastedMs })
  }
}

/** The watched problems. Those that were announced are stored as soon as the database can be written. */
function createMemory({ read, write }: AnnouncedStorage, clock: Clock) {
  let watched: readonly WatchedProblem[] = []
  let isLoaded = false
  let stored = '[]'
  let saving: Promise<void> | undefined

  /** Nothing is stored before the stored problems are known, since that would remove them. */
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
