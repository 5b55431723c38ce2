import { expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { askAt, freePath } from '../server/status-server.ts'
import { until } from '../support/until.ts'
import { daemonInProcess } from './in-process.ts'

const STUCK_MS = 5 * 60_000

/** The system clock, which a test moves ahead. */
function clockToMove() {
  const real = systemClock()
  let ahead = 0
  let held = Promise.resolve()
  const clock: Clock = {
    ...real,
    elapsed: () => real.elapsed() + ahead,
    async sleep(ms, signal) {
      await real.sleep(ms, signal)
      await held
    },
  }
  /** Moves the clock ahead and looks. Meanwhile no wait of the program ends. */
  async function later<Seen>(ms: number, look: () => Promise<Seen>): Promise<Seen> {
    let release: () => void = () => undefined
    held = new Promise<void>(resolve => {
      release = resolve
    })
    ahead += ms
    try {
      return await look()
    } finally {
      release()
    }
  }
  return { clock, later }
}

test('a write that has not ended for five minutes ends the answers of /livez and the watchdog', async context => {
  const { clock, later } = clockToMove()
  let isAlive: () => boolean = () => true
  const listen = `unix:${freePath('parley.sock')}`
  const serviceManager = {
    watchdog: (sign: () => boolean) => {
      isAlive = sign
    },
  }
  const { simulator, file, stop, ended } = await daemonInProcess(context, { clock, listen, serviceManager })
  const look = async () => {
    const { status, text } = await askAt(listen, 'GET', '/livez', { headers: { host: 'parley' } })
    return { status, text, isAlive: isAlive() }
  }
  /** A commit that happens to run at that moment counts as stuck, so the looks go on. */
  const seen = (isAlive: boolean) =>
    until(
      () => later(STUCK_MS, look),
      found => found.isAlive === isAlive && found.status === (isAlive ? 200 : 503),
    )
  expect(await seen(true)).toEqual({ status: 200, text: 'ok\n', isAlive: true })

  const stranger = openSqlite(file)
  stranger.exec('BEGIN IMMEDIATE')
  simulator.apply({ kind: 'publish', resource: 'messages' })
  expect(await seen(false)).toEqual({
    status: 503,
    text: 'no commit or checkpoint of the database has ended for 5 minutes\n',
    isAlive: false,
  })
  stranger.exec('ROLLBACK')
  stranger.close()
  stop.abort()
  expect(await ended).toBe(0)
})
