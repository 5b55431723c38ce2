import { parseArgs } from 'node:util'
import { debianClickHouse, startDebian } from '../engines/clickhouse-servers.ts'
import { type KillTally, killPublications } from './clickhouse/kill-publications.ts'

/**
 * Publishes a warehouse that changes to a real ClickHouse server of Debian's packages, and kills the publishing process
 * or the server: `npx tsx test/torture/publish-clickhouse.ts [--seed 1] [--publications 50] [--kills 10] [--server-kills 2]`.
 * The exit status is 1 when a reader saw a mixed, short or older publication.
 */

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    publications: { type: 'string', default: '50' },
    kills: { type: 'string', default: '10' },
    'server-kills': { type: 'string', default: '2' },
  },
})

const program = debianClickHouse()
if (typeof program === 'string') throw new Error(program)
const { servers, close } = await startDebian(program)
const [server] = servers
if (!server) throw new Error('There is no server')

const said = ({
  complete,
  killed,
  interrupted,
  serverKilled,
  failed,
  looks,
  compared,
  verified,
  seen,
  faults,
}: KillTally) =>
  `${complete} complete; ${killed} killed (${interrupted} not complete); server killed ${serverKilled} times (${failed} failed); ${looks} looks, ${seen} versions seen, ${compared} compared with SQLite, ${verified} verified meanwhile; ${faults.length} faults`

let publications = 0
let shown = 0
try {
  const tally = await killPublications({
    server,
    program: process.env['PARLEY_PROGRAM'] ?? new URL('../../dist/cli.js', import.meta.url).pathname,
    seed: Number(values.seed),
    publications: Number(values.publications),
    kills: Number(values.kills),
    serverKills: Number(values['server-kills']),
    onPublication(now) {
      publications += 1
      for (const fault of now.faults.slice(shown)) process.stdout.write(`${fault}\n`)
      shown = now.faults.length
      if (publications % 50 === 0) process.stdout.write(`${publications}: ${said(now)}\n`)
    },
  })
  process.stdout.write(`${said(tally)}\n`)
  process.exitCode = tally.faults.length > 0 ? 1 : 0
} finally {
  await close()
}
