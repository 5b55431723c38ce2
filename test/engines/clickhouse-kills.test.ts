import { expect, onTestFinished, test } from 'vitest'
import { PROGRAM } from '../cli/parley.ts'
import { killPublications } from '../torture/clickhouse/kill-publications.ts'
import { debianClickHouse, startDebian } from './clickhouse-servers.ts'

const debian = debianClickHouse()

test.skipIf(typeof debian === 'string')(
  'readers see complete publications only while publishing processes and the server are killed at random moments',
  async () => {
    if (typeof debian === 'string') return
    const { servers, close } = await startDebian(debian)
    onTestFinished(close)
    const [server] = servers
    if (!server) throw new Error('There is no server')
    const tally = await killPublications({
      server,
      program: PROGRAM,
      seed: 4,
      publications: 12,
      kills: 5,
      serverKills: 2,
    })
    expect(tally.faults).toEqual([])
    expect(tally).toMatchObject({ killed: 5, serverKilled: 2 })
    expect(tally.complete).toBeGreaterThanOrEqual(5)
    expect(tally.looks).toBeGreaterThan(12)
  },
)
