import { execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { startSimulatorProcess } from '../support/simulator-process.ts'
import { until } from '../support/until.ts'

/**
 * A clone is installed, built and used as the first page says, with each Node and npm that the registry has as
 * packages. The Node that runs these tests also runs all the others.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const POLLS = 10

/** Without the settings of the npm that runs these tests, such as `ignore-scripts`: the package `node` needs its script. */
const ENVIRONMENT = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')),
)

describe.each([
  ['22', '11'],
  ['24', '12'],
  ['26', '12'],
])('on Node %s with npm %s', (node, npm) => {
  let clone: string
  let path: string

  /** Runs a command with that Node. */
  function start(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const child = spawn(command, args, {
      cwd: clone,
      env: { ...ENVIRONMENT, PATH: path, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const status = new Promise<number | null>(resolve => child.on('close', resolve))
    const ended = Promise.all([status, text(child.stdout), text(child.stderr)])
    return { child, ended: ended.then(([code, out, err]) => ({ status: code, said: out + err })) }
  }

  beforeAll(() => {
    const tools = mkdtempSync(join(tmpdir(), 'parley-node-'))
    execFileSync('npm', ['install', '--prefix', tools, `node@${node}`, `npm@${npm}`], {
      env: ENVIRONMENT,
      stdio: 'pipe',
    })
    path = [join(tools, 'node_modules/.bin'), process.env['PATH']].join(delimiter)
    clone = mkdtempSync(join(tmpdir(), 'parley-clone-'))
    const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' })
    for (const file of files.split('\0').filter(name => name !== ''))
      if (existsSync(join(ROOT, file))) cpSync(join(ROOT, file), join(clone, file))
  })

  test('the commands of the first page install and run without a compiler', async () => {
    const { said: version } = await start('node', ['--version']).ended
    expect(version).toMatch(new RegExp(`^v${node}\\.`))
    for (const args of [['ci'], ['run', 'demo']]) {
      const { status, said } = await start('npm', args, { CC: 'false', CXX: 'false' }).ended
      expect(status, said).toBe(0)
      expect(said).not.toContain('Compiling')
    }
  })

  test('the daemon keeps a warehouse up to date until it is stopped', async () => {
    const simulator = await startSimulatorProcess({ messages: 300 })
    const daemon = start('node', ['dist/cli.js', 'daemon', '--database', 'daemon.db'], {
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
    const database =
      words.includes('--database') || command.includes('verify') ? [] : ['--database', 'demo.db']
    const { status, said } = await start('node', ['dist/cli.js', ...words, ...database]).ended
    expect(status, said).toBe(0)
  })
})
