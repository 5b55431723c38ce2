import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { runDaemon } from '../../src/daemon/daemon.ts'
import { createServiceManager, type ServiceManager } from '../../src/daemon/service-manager.ts'
import { RESOURCE_NAMES } from '../../src/declare/resource-names.ts'
import type { Simulator } from '../../src/simulator/server.ts'
import { placeFor, workspace } from '../cli/workspace.ts'
import { loaded } from './cli-daemon.ts'

export interface DaemonInProcess extends DaemonLife {
  simulator: Simulator
  file: string
  /** The file that holds the API key. */
  keyFile: string
  /** Starts a daemon on the same warehouse, after the last one has ended. */
  start(): DaemonLife
}

export interface DaemonLife {
  stop: AbortController
  /** Requests a reload of the settings, as SIGHUP does. */
  reload(): void
  ended: Promise<number>
}

export interface DaemonSurroundings {
  clock: Clock
  /** The address of the status server; default none. */
  listen?: string
  serviceManager?: Partial<ServiceManager>
  /** More variables of the settings. */
  env?: Readonly<Record<string, string>>
}

/** A daemon inside this process, so that a test can hold its clock. It has read everything once. */
export async function daemonInProcess(
  context: TestContext,
  { clock, listen = 'off', serviceManager = {}, env: more = {} }: DaemonSurroundings,
): Promise<DaemonInProcess> {
  const simulator = await workspace(context)
  const { cwd, file, env } = placeFor(simulator)
  const keyFile = join(cwd, 'key')
  writeFileSync(keyFile, simulator.apiKey, { mode: 0o600 })
  const { PARLEY_API_KEY: _, ...others } = env
  const reload = () =>
    loadSettings({
      flags: { 'database.path': file },
      env: {
        ...others,
        PARLEY_API_KEY_FILE: keyFile,
        PARLEY_HTTP_LISTEN: listen,
        PARLEY_SYNC_POLL_SECONDS: '1',
        ...more,
      },
      cwd,
      requireApi: true,
      resourceNames: RESOURCE_NAMES,
    }).settings
  const log = await createLog({ level: 'fatal' })
  const start = () => {
    const stop = new AbortController()
    context.onTestFinished(() => stop.abort())
    let request: () => void = () => undefined
    const ended = runDaemon({
      settings: reload(),
      reload,
      onReload: listener => {
        request = listener
      },
      createLog: async () => log,
      serviceManager: { ...createServiceManager({ env: {}, clock, log }), ...serviceManager },
      env: { PATH: process.env['PATH'] },
      clock,
      pid: process.pid,
      version: '0',
      stop: stop.signal,
    })
    return { stop, ended, reload: () => request() }
  }
  const first = start()
  await Promise.race([loaded(file), first.ended])
  return { simulator, file, keyFile, ...first, start }
}
