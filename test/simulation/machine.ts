import { AsyncLocalStorage } from 'node:async_hooks'
import crypto from 'node:crypto'
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import threads from 'node:worker_threads'
import FakeTimers from '@sinonjs/fake-timers'
import type BetterSqlite from 'better-sqlite3'
import { StopError } from '../../src/base/errors.ts'
import { runCommandLine } from '../../src/command-line/command-line.ts'
import { sqlitePackage } from '../../src/store/database/sqlite.ts'
import { createDraw } from '../torture/draw.ts'
import { createNetwork } from './network.ts'

/** What the program loads late is loaded first: some modules draw chance then, and the first life would draw more. */
const SOURCES = resolve(import.meta.dirname, '../../src')
for (const file of readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })) {
  if (!file.endsWith('.ts') || file.endsWith('.d.ts')) continue
  const path = join(SOURCES, file)
  for (const [, name = ''] of readFileSync(path, 'utf8').matchAll(/\bimport\('([^']+)'\)/g))
    await import(name.startsWith('.') ? resolve(dirname(path), name) : name)
}

/**
 * A machine inside this process, on which the real command line runs: its time jumps to the next timer as soon as nothing
 * is left to do now, its network reaches the given servers only, and its programs can be killed at any statement. All that
 * gives a program time or chance is replaced here, and nowhere else: timers and clocks, random numbers, sockets, and
 * `'now'` in SQL.
 */
export interface Machine {
  /** Milliseconds since the epoch, by a clock that is always right. */
  now(): number
  /** Sets the error of the machine's own clock. */
  setClock(offMs: number): void
  /** The machine sleeps: its clock goes on, its timers do not. */
  suspend(ms: number): void
  /**
   * Resolves once the program has loaded its modules, for which no time passes.
   * @param listens whether it has a server, which it loads late
   */
  start(argv: readonly string[], env: Readonly<Record<string, string>>, listens?: boolean): Promise<Program>
  /** Lets time pass until the condition is true, which is tried after each event. */
  until(isIt: () => boolean): Promise<void>
  /** Ends earlier when the condition is true. */
  pass(ms: number, isIt?: () => boolean): Promise<void>
  close(): void
}

/** A running parley. */
export interface Program {
  /** The exit status; undefined while it runs, and after a kill. */
  status(): number | undefined
  isKilled(): boolean
  output: { stdout: string; stderr: string; log: string }
  signal(name: 'SIGTERM' | 'SIGHUP'): void
  /**
   * As by SIGKILL: at once, or before the n-th statement of SQL from now that contains the text. Its files stay as they
   * are at that moment.
   */
  kill(atStatement?: number, withText?: string): void
  statements(): number
}

interface Owner {
  isDead: boolean
  statements: number
  /** It is killed before the `left`-th statement with this text. */
  fuse?: { left: number; withText: string }
  connections: Set<BetterSqlite.Database>
  /** What it waits for. A program that waits for nothing is loading a module, for which no time passes. */
  timers: Set<unknown>
}

/** What a killed program meets wherever it turns. */
class Killed extends Error {}

const TIMERS = [
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
] as const

const DAY = 86_400_000

/** On a day. An idle daemon wakes 40,000 times, and one that waits for a route at each second 200,000 times. */
const MOST_WAKES = 400_000

/** Of real time. */
const MOST_LOADING_MS = 60_000

export interface MachineOptions {
  seed: number
  /** Milliseconds since the epoch. */
  start: number
  servers: Readonly<Record<string, Server>>
  /** Databases that a kill leaves as they are at that moment. */
  files: readonly string[]
}

/** undici has one timer for all its deadlines. One of another clock, or of a program that is dead, would never fire again. */
export const httpTimers: { reset(): void; setFastTimeout(call: () => void, ms: number): void } =
  createRequire(import.meta.url)('undici/lib/util/timers.js')

export function createMachine({ seed, start, servers, files }: MachineOptions): Machine {
  httpTimers.reset()
  const realImmediate = globalThis.setImmediate
  const realNow = performance.now.bind(performance)
  const context = new AsyncLocalStorage<Owner | undefined>()
  const programs = new Set<Owner>()
  const time = FakeTimers.install({ now: start, toFake: [...TIMERS, 'Date', 'performance'] })
  let sleptMs = 0
  let offMs = 0
  const now = () => start + time.performance.now() + sleptMs
  // In reverse: the names that modules import follow what they were exported from, the timers of node:timers among them.
  // A context that is not disabled costs each later promise a little.
  const undo: (() => void)[] = [syncBuiltinESMExports, () => time.uninstall(), () => context.disable()]
  const replace = <O extends object, K extends keyof O>(object: O, key: K, value: O[K]) => {
    const before = Object.getOwnPropertyDescriptor(object, key)
    Object.defineProperty(object, key, { value, configurable: true, writable: true, enumerable: true })
    undo.push(() => {
      if (before) Object.defineProperty(object, key, before)
      else delete object[key]
    })
  }

  /**
   * A callback of a timer runs in the context that set it, and not at all once its program is dead. As in Node, no timer
   * is shorter than a millisecond.
   */
  const owned = (set: (call: () => void, ms: number) => unknown, isRepeated = false) =>
    ((callback: (...args: unknown[]) => void, ms: number, ...args: unknown[]) => {
      const owner = context.getStore()
      const timer = set(
        () => {
          if (!isRepeated) owner?.timers.delete(timer)
          if (owner?.isDead !== true) context.run(owner, callback, ...args)
        },
        Math.max(ms || 0, 1),
      )
      owner?.timers.add(timer)
      return timer
    }) as never
  const { setTimeout, setInterval, setImmediate } = globalThis
  replace(
    globalThis,
    'setTimeout',
    owned((call, ms) => setTimeout(call, ms)),
  )
  replace(
    globalThis,
    'setInterval',
    owned((call, ms) => setInterval(call, ms), true),
  )
  for (const name of ['clearTimeout', 'clearInterval'] as const) {
    const clear = globalThis[name]
    replace(globalThis, name, timer => {
      for (const { timers } of programs) timers.delete(timer)
      clear(timer)
    })
  }
  replace(globalThis, 'setImmediate', ((callback: (...args: unknown[]) => void, ...args: unknown[]) => {
    const owner = context.getStore()
    return setImmediate(() => {
      if (owner?.isDead !== true) context.run(owner, callback, ...args)
    })
  }) as never)

  const draw = createDraw(seed)
  const bytes = (length: number) => Buffer.from(Array.from({ length }, () => draw.below(256)))
  replace(process, 'pid', 4711)
  replace(Math, 'random', () => draw.below(2 ** 32) / 2 ** 32)
  replace(crypto, 'randomBytes', ((length: number) => bytes(length)) as never)
  replace(crypto, 'randomUUID', () => {
    const hex = bytes(16).toString('hex')
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
  })
  // The time of another thread is the real one. Without it the program does that work itself.
  replace(
    threads,
    'Worker',
    class {
      constructor() {
        throw new Error('this machine has one thread')
      }
    } as never,
  )
  syncBuiltinESMExports()

  const network = createNetwork<Owner | undefined>(context, undefined, servers)
  undo.push(network.close)
  undo.push(watchSqlite(replace, context, () => new Date().toISOString()))

  const faults: unknown[] = []
  const listeners = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  const onRejection = (error: unknown) => {
    if (!isOfDead(error)) faults.push(error)
  }
  process.on('unhandledRejection', onRejection)
  undo.push(() => {
    process.off('unhandledRejection', onRejection)
    for (const listener of listeners) process.on('unhandledRejection', listener)
  })
  undo.push(httpTimers.reset)

  const turn = () => new Promise<void>(resolve => realImmediate(resolve))
  const settle = async () => {
    do await turn()
    while (process.getActiveResourcesInfo().some(name => name.startsWith('FSReq')))
    for (const owner of programs) if (owner.isDead) bury(owner)
    if (faults.length > 0) throw faults[0]
  }
  const bury = (owner: Owner) => {
    programs.delete(owner)
    for (const file of files)
      for (const path of [file, `${file}-wal`]) if (existsSync(path)) copyFileSync(path, `${path}.kept`)
    for (const connection of owner.connections) connection.close()
    network.drop(owner)
    httpTimers.reset()
    for (const file of files) {
      for (const path of [file, `${file}-wal`, `${file}-shm`]) {
        rmSync(path, { force: true })
        if (existsSync(`${path}.kept`)) renameSync(`${path}.kept`, path)
      }
    }
  }
  const adjust = () => time.setSystemTime(now() + offMs)

  const wakes = { day: 0, count: 0 }
  const countWake = () => {
    const day = Math.floor(now() / DAY)
    if (day !== wakes.day) Object.assign(wakes, { day, count: 0 })
    wakes.count += 1
    if (wakes.count > MOST_WAKES) throw new Error(`something wakes ${MOST_WAKES} times on one day`)
  }

  const until = async (isIt: () => boolean) => {
    let movedAt = realNow()
    for (;;) {
      await settle()
      if (isIt()) return
      if ([...programs].some(({ timers }) => timers.size === 0)) {
        if (realNow() - movedAt > MOST_LOADING_MS) throw new Error('a program waits for nothing')
        time.tick(0)
        continue
      }
      movedAt = realNow()
      if (time.countTimers() === 0) throw new Error('nothing will ever happen again')
      countWake()
      const before = time.now
      // As in Node, all timers of an instant run before what they have made possible.
      if (time.next() > before) time.tick(0)
    }
  }

  return {
    now,
    setClock(ms) {
      offMs = ms
      adjust()
    },
    suspend(ms) {
      sleptMs += ms
      adjust()
    },
    until,
    async pass(ms, isIt = () => false) {
      const end = now() + ms
      let isOver = false
      setTimeout(() => {
        isOver = true
      }, ms)
      await until(() => isOver || now() >= end || isIt())
    },
    async start(argv, env, listens = false) {
      const owner: Owner = {
        isDead: false,
        statements: 0,
        connections: new Set(),
        timers: new Set(),
      }
      const stop = new AbortController()
      const hangups: (() => void)[] = []
      const output = { stdout: '', stderr: '', log: '' }
      const into = (name: keyof typeof output) => ({
        write(text: string) {
          output[name] += text
        },
      })
      let status: number | undefined
      programs.add(owner)
      context.run(owner, () => {
        void runCommandLine(argv, {
          env,
          cwd: '/',
          stdout: into('stdout'),
          stderr: into('stderr'),
          log: into('log'),
          stdin: NOBODY,
          signal: stop.signal,
          onSignal: (name, listener) => {
            if (name === 'SIGHUP') hangups.push(listener)
          },
          version: '0.0.0',
        }).then(ended => {
          if (owner.isDead) return
          status = ended
          programs.delete(owner)
        })
      })
      const isLoading = () => owner.statements === 0 || (listens && !network.listens(owner))
      while (isLoading() && status === undefined) {
        await settle()
        time.tick(0)
      }
      return {
        status: () => status,
        isKilled: () => owner.isDead,
        output,
        statements: () => owner.statements,
        signal(name) {
          context.run(owner, () => {
            if (name === 'SIGTERM') stop.abort(new StopError('Stopped', { code: 'stopped', exitStatus: 75 }))
            else for (const listener of hangups) listener()
          })
        },
        kill(atStatement, withText = '') {
          if (status !== undefined) return
          if (atStatement === undefined) owner.isDead = true
          else owner.fuse = { left: atStatement, withText }
        },
      }
    },
    close() {
      for (const owner of programs) {
        owner.isDead = true
        bury(owner)
      }
      for (const step of undo.reverse()) step()
    },
  }
}

const NOBODY = { on: () => undefined, off: () => undefined, resume: () => undefined, pause: () => undefined }

const isOfDead = (error: unknown): boolean =>
  error instanceof Killed ||
  (error instanceof Error &&
    /database connection is not open/.test(`${error.message} ${String(error.cause)}`))

type Replace = <O extends object, K extends keyof O>(object: O, key: K, value: O[K]) => void

/** Every connection belongs to the program that uses it first, has the machine's time, and fails once its program is dead. */
function watchSqlite(
  replace: Replace,
  context: AsyncLocalStorage<Owner | undefined>,
  isoNow: () => string,
): () => void {
  const Library: typeof BetterSqlite = createRequire(import.meta.url)(sqlitePackage(process.versions.node))
  const plain = new Library(':memory:')
  const statements = Object.getPrototypeOf(plain.prepare('SELECT 1'))
  const originals = new Map<string, BetterSqlite.Statement>()
  const functions = ['strftime', 'date', 'datetime'].map(name => {
    const call = (...given: unknown[]) => {
      const sql = `SELECT ${name}(${given.map(() => '?').join(', ')})`
      const statement = originals.get(sql) ?? plain.prepare(sql).pluck()
      originals.set(sql, statement)
      return plainGet.call(statement, ...given.map(value => (value === 'now' ? isoNow() : value)))
    }
    return [name, call] as const
  })
  const plainGet: (this: unknown, ...values: unknown[]) => unknown = statements.get
  const plainPragma: (this: unknown, text: string) => unknown = Library.prototype.pragma as never
  const seen = new WeakSet<object>()
  const enter = (db: BetterSqlite.Database, sql?: string) => {
    const owner = context.getStore()
    if (db === plain) return
    if (owner?.isDead) throw new Killed('killed')
    if (!seen.has(db)) {
      seen.add(db)
      owner?.connections.add(db)
      // SQLite itself would wait for a lock in real time, in which nothing here can release it.
      plainPragma.call(db, 'busy_timeout = 0')
      for (const [name, call] of functions)
        db.function(name, { varargs: true, deterministic: true }, call as never)
    }
    if (owner === undefined || sql === undefined) return
    owner.statements += 1
    if (owner.fuse === undefined || !sql.includes(owner.fuse.withText)) return
    owner.fuse.left -= 1
    if (owner.fuse.left > 0) return
    owner.isDead = true
    throw new Killed('killed')
  }
  for (const name of ['prepare', 'exec', 'pragma'] as const) {
    const original: (this: unknown, ...args: unknown[]) => unknown = Library.prototype[name] as never
    replace(Library.prototype, name, function (this: BetterSqlite.Database, ...args: unknown[]) {
      enter(this, name === 'exec' ? String(args[0]) : undefined)
      return original.apply(this, args)
    } as never)
  }
  for (const name of ['run', 'get', 'all', 'iterate'] as const) {
    const original: (this: unknown, ...args: unknown[]) => unknown = statements[name]
    replace(statements, name, function (this: BetterSqlite.Statement, ...args: unknown[]) {
      enter(this.database, this.source)
      return original.apply(this, args)
    } as never)
  }
  return () => plain.close()
}
