import { openSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { startMeasured, type Usage } from './measured-process.ts'
import type { Workspace } from './workspace.ts'

/** The built daemon in a separate process, on an empty database. */
export interface DaemonProcess {
  pid: number
  /** Requests sent so far, by lane. */
  requestsByLane(): Promise<Record<string, number>>
  /** Its in-flight limit. */
  concurrency(): Promise<number>
  /** What its status server answers. */
  ask(path: string): Promise<string>
  /** Resolves with a read-only connection as soon as there is a warehouse. */
  openWarehouse(): Promise<Sqlite>
  stop(): Promise<Usage>
}

export interface DaemonOptions {
  folder: string
  /** The built command line program. */
  program: string
  /** Default: that of the program. */
  pollSeconds?: number
  logLevel: string
  /** More settings, as environment variables. */
  settings?: Readonly<Record<string, string>>
}

/** Its files in the folder: parley.db and daemon.log. */
export function startDaemon(
  workspace: Pick<Workspace, 'url' | 'apiKey' | 'workspaceId'>,
  options: DaemonOptions,
): DaemonProcess {
  const { folder, program, pollSeconds, logLevel, settings } = options
  const database = join(folder, 'parley.db')
  const socket = join(folder, 'status.sock')
  const { child, ended } = startMeasured(
    [program, 'daemon', '--database', database, '--listen', `unix:${socket}`, '--log-level', logLevel],
    {
      PATH: process.env['PATH'],
      PARLEY_BASE_URL: workspace.url,
      PARLEY_API_KEY: workspace.apiKey,
      PARLEY_WORKSPACE_ID: workspace.workspaceId,
      ...(pollSeconds === undefined ? {} : { PARLEY_SYNC_POLL_SECONDS: String(pollSeconds) }),
      ...settings,
    },
    openSync(join(folder, 'daemon.log'), 'w'),
  )
  child.stdout?.resume()
  let isOver = false
  const over = () => {
    isOver = true
  }
  ended.then(over, over)
  if (child.pid === undefined) throw new Error(`${program} could not be started`)
  return {
    pid: child.pid,
    requestsByLane: async () => lanesIn(await ask(socket, '/metrics')),
    concurrency: async () => Number(/^parley_concurrency (\d+)/m.exec(await ask(socket, '/metrics'))?.[1]),
    ask: path => ask(socket, path),
    async openWarehouse() {
      for (;;) {
        const db = openMade(database)
        if (db) return db
        if (isOver) throw new Error(`the daemon ended early: see daemon.log in ${folder}`)
        await sleep(100)
      }
    },
    stop: () => {
      child.kill('SIGTERM')
      return ended
    },
  }
}

/** Undefined while the database is being created. */
function openMade(path: string): Sqlite | undefined {
  try {
    const db = openSqlite(path, { readonly: true, fileMustExist: true })
    if (db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sync_status'").get()) return db
    db.close()
  } catch {
    return undefined
  }
  return undefined
}

function ask(socketPath: string, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ socketPath, path }, response => resolve(text(response))).on('error', reject)
  })
}

function lanesIn(exposition: string): Record<string, number> {
  const lines = exposition.matchAll(/^parley_lane_requests_total\{lane="(\w+)"\} (\d+)/gm)
  return Object.fromEntries([...lines].map(([, lane, count]) => [lane, Number(count)]))
}
