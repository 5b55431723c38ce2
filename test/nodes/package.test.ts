import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { startSimulatorProcess } from '../support/simulator-process.ts'
import { until } from '../support/until.ts'
import { emptyFolder, installNode, ROOT } from './node.ts'

/**
 * The package as `npm pack` makes it from the program that is built, installed for all users into an empty folder, with
 * each supported Node.
 */

const POLLS = 10

let tarball: string
beforeAll(() => {
  const folder = emptyFolder('package')
  // Other tests run the same build meanwhile, so it is not made again.
  execFileSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], {
    cwd: ROOT,
    stdio: 'pipe',
  })
  tarball = join(folder, ...readdirSync(folder))
})

test('a key and settings that `parley init` wrote into the clone stay out of the package', () => {
  const clone = emptyFolder('clone')
  for (const path of ['package.json', 'config'])
    cpSync(join(ROOT, path), join(clone, path), { recursive: true })
  for (const name of ['parley.key', 'parley.toml']) writeFileSync(join(clone, 'config', name), '')
  const said = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: clone,
    encoding: 'utf8',
  })
  const [{ files }] = JSON.parse(said) as [{ files: { path: string }[] }]
  const names = files.map(({ path }) => path).filter(path => path.startsWith('config/'))
  expect(names.sort()).toEqual(['config/README.md', 'config/parley.example.toml'])
})

const WITHOUT_COMPILER = { CC: 'false', CXX: 'false' }
/** Optimised, SQLite takes a minute to compile. */
const FAST_COMPILER = { CFLAGS: '-O0', CXXFLAGS: '-O0' }

// npm 12 does not run on Node 20. What follows an installation does not depend on the npm: once for each Node is enough.
describe.each<[node: string, npm: string, compiler: Readonly<Record<string, string>>, isUsed: boolean]>([
  ['20', '11', FAST_COMPILER, true],
  ['22', '11', WITHOUT_COMPILER, true],
  ['22', '12', WITHOUT_COMPILER, false],
  ['24', '11', WITHOUT_COMPILER, false],
  ['24', '12', WITHOUT_COMPILER, true],
  ['26', '11', WITHOUT_COMPILER, false],
  ['26', '12', WITHOUT_COMPILER, true],
])('with Node %s and npm %s', (node, npm, compiler, isUsed) => {
  let run: (
    command: string,
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
  ) => ReturnType<ReturnType<typeof installNode>>
  const cwd = emptyFolder('work')
  const prefix = emptyFolder('prefix')
  const parley = join(prefix, 'bin/parley')

  beforeAll(() => {
    const start = installNode(node, npm)
    run = (command, args, env) => start(command, args, { cwd, ...(env && { env }) })
  })

  test('the package is installed', async () => {
    const { status, said } = await run('npm', ['install', '-g', '--prefix', prefix, tarball], compiler).ended
    expect(status, said).toBe(0)
    expect(readdirSync(join(prefix, 'bin')).sort()).toEqual(['parley', 'parleyd'])
    // npm 12 installs no manual pages.
    expect(existsSync(join(prefix, 'share/man/man1/parley.1'))).toBe(npm === '11')
    const { said: doctor } = await run(parley, ['doctor']).ended
    expect(doctor).toMatch(new RegExp(`version: parley \\S+ on Node ${node}\\.`))
    expect(doctor).toMatch(/SQLite: version 3\./)
    expect(said.includes('install scripts blocked')).toBe(npm === '12')
  })

  test('npx runs it', async () => {
    // As README.md says. An absolute path would be run as a program.
    const name = basename(tarball)
    copyFileSync(tarball, join(cwd, name))
    const npx = () => run('npx', ['--yes', `./${name}`, '--version'], compiler).ended
    let { status, said } = await npx()
    // npx gives up its own lock when a busy machine does not let it run for some seconds.
    for (let again = 0; again < 3 && said.includes('ECOMPROMISED'); again += 1)
      ({ status, said } = await npx())
    expect(status, said).toBe(0)
    expect(said).toMatch(/^\d+\.\d+\.\d+$/m)
  })

  if (!isUsed) return

  test('a daemon keeps a warehouse up to date until it is stopped', async () => {
    const simulator = await startSimulatorProcess({ messages: 300 })
    const daemon = run(parley, ['daemon', '--database', 'daemon.db'], {
      PARLEY_BASE_URL: simulator.url,
      PARLEY_API_KEY: simulator.apiKey,
      PARLEY_WORKSPACE_ID: simulator.workspaceId,
      PARLEY_HTTP_LISTEN: 'off',
      PARLEY_SYNC_POLL_SECONDS: '1',
    })
    const polls = async () => {
      const { counts } = await simulator.requests()
      const lists = counts.filter(({ route, status }) => route.endsWith('/activities') && status === 200)
      return lists.reduce((sum, { count }) => sum + count, 0)
    }
    const before = await until(polls, count => count > 0)
    expect(await until(polls, count => count > before + POLLS)).toBeGreaterThan(before + POLLS)
    daemon.child.kill('SIGTERM')
    const { status, said } = await daemon.ended
    expect(status, said).toBe(0)
    await simulator.close()
  })

  test.for([
    'demo --messages 300',
    'status',
    'search price',
    'schema meetings',
    'snapshot copy.db',
    'restore copy.db --database restored.db',
    'export parquet files',
    'publish tables',
    'publish tables',
    'publish verify tables',
  ])('parley %s succeeds on the warehouse of the demo', async command => {
    const words = command.split(' ')
    const hasDatabase =
      !command.startsWith('demo') && !command.includes('--database') && !command.includes('verify')
    const { status, said } = await run(parley, [...words, ...(hasDatabase ? ['--database', 'demo.db'] : [])])
      .ended
    expect(status, said).toBe(0)
  })
})
