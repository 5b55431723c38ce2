import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.ts'
import { requirePrograms } from '../systemd/tools.ts'
import { emptyFolder, PROGRAM } from './parley.ts'

/** What `init` asks and does on a terminal. */

const [ADDRESS, WORKSPACE, KEY, ESTIMATE] = ['of the API', 'the workspace', 'API key', 'Estimate now']
const read = (cwd: string, name: string) => readFileSync(join(cwd, name), 'utf8')
let simulator: SimulatorProcess

beforeAll(async () => {
  requirePrograms('python3')
  simulator = await startSimulatorProcess({ messages: 100 })
})
afterAll(() => simulator.close())

test('init asks for address, workspace and key, does not show the key, tries them and estimates a backfill', () => {
  const cwd = emptyFolder()
  const { status, shown } = onTerminal(cwd, ['init', '--config', 'acme.toml'], {
    [ADDRESS]: `${simulator.url}X\u007f\r`,
    [WORKSPACE]: `${simulator.workspaceId}\r`,
    [KEY]: `${simulator.apiKey}X\u007f\r`,
    [ESTIMATE]: '\r',
  })
  expect({ status, shown }).toEqual({ status: 0, shown: expect.not.stringContaining(simulator.apiKey) })
  expect(shown).toContain(simulator.url)
  expect(shown).toContain('key: accepted')
  expect(shown).toContain('message_bodies')
  expect(read(cwd, 'acme.key')).toBe(`${simulator.apiKey}\n`)
  expect(statSync(join(cwd, 'acme.key')).mode & 0o777).toBe(0o600)
  expect(read(cwd, 'acme.toml')).toContain('\nkey_file = "acme.key"\n')
  const { settings } = loadSettings({ flags: { config: 'acme.toml' }, env: {}, cwd, requireApi: true })
  expect(settings.api).toMatchObject({
    baseUrl: simulator.url,
    workspaceId: simulator.workspaceId,
    key: simulator.apiKey,
  })
})

test.for<[answer: string]>([['n\r'], ['\u0003']])(
  'the estimate is only made if it is wanted: %j',
  ([answer]) => {
    const flags = ['--base-url', simulator.url, '--workspace-id', simulator.workspaceId]
    const { status, shown } = onTerminal(emptyFolder(), ['init', ...flags], {
      [KEY]: `${simulator.apiKey}\r`,
      [ESTIMATE]: answer,
    })
    expect({ status, shown }).toEqual({ status: 0, shown: expect.not.stringContaining('message_bodies') })
  },
)

test('init says at once that the API refuses the key, and keeps the files', () => {
  const cwd = emptyFolder()
  const flags = ['--base-url', simulator.url, '--workspace-id', simulator.workspaceId]
  const { status, shown } = onTerminal(cwd, ['init', ...flags], { [KEY]: 'another-key\r' })
  expect({ status, shown }).toEqual({ status: 77, shown: expect.stringContaining('refuses the key') })
  expect(readdirSync(join(cwd, 'config')).sort()).toEqual(['parley.key', 'parley.toml'])
})

test('with --no-try nothing is asked of the API', () => {
  const flags = ['--no-try', '--base-url', 'https://api.example.com', '--workspace-id', '42']
  const { status, shown } = onTerminal(emptyFolder(), ['init', ...flags], { [KEY]: 'the-key\r' })
  expect({ status, shown }).toEqual({
    status: 0,
    shown: expect.stringContaining('1. Check the settings: parley doctor'),
  })
})

test.for<[what: string, typed: Record<string, string>, status: number]>([
  ['Ctrl-C', { [KEY]: 'half\u0003' }, EXIT_STATUS.unfinished],
  ['what is no key', { [KEY]: 'two words\r' }, EXIT_STATUS.usage],
  ['what is no address', { [ADDRESS]: 'nowhere\r' }, EXIT_STATUS.usage],
])('%s as an answer writes no file', ([, typed, status]) => {
  const cwd = emptyFolder()
  expect(onTerminal(cwd, ['init'], { [ADDRESS]: '\r', [WORKSPACE]: '\r', ...typed })).toMatchObject({
    status,
    shown: expect.not.stringMatching(/half|two words/),
  })
  expect(readdirSync(cwd)).toEqual([])
})

test('Enter alone skips a question', () => {
  const cwd = emptyFolder()
  const { status, shown } = onTerminal(cwd, ['init'], { [ADDRESS]: '\r', [WORKSPACE]: '\r', [KEY]: '\r' })
  expect({ status, shown }).toEqual({ status: 0, shown: expect.stringContaining('2. Put the API key in') })
  expect(readdirSync(join(cwd, 'config'))).toEqual(['parley.toml'])
})

/** Runs the program on a pseudo-terminal, and types each answer when its question is shown. */
function onTerminal(
  cwd: string,
  args: readonly string[],
  answers: Readonly<Record<string, string>>,
): { status: number; shown: string } {
  const script = `
import json, os, pty, re, sys
answers = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
shown, since = b"", 0
while True:
    try:
        part = os.read(terminal, 4096)
    except OSError:
        break
    if not part:
        break
    shown += part
    asked = re.search(rb"(?:skip\\)|\\[Y/n\\]):? ", shown[since:])
    if asked:
        question = shown[since:since + asked.end()].decode()
        since += asked.end()
        os.write(terminal, next((answer for name, answer in answers.items() if name in question)).encode())
os.write(1, shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))`
  const { status, stdout, stderr } = spawnSync(
    'python3',
    ['-c', script, JSON.stringify(answers), process.execPath, PROGRAM, ...args],
    {
      cwd,
      encoding: 'utf8',
      // Only for a program that hangs.
      timeout: 600_000,
      env: { PATH: process.env['PATH'] },
    },
  )
  return { status: status ?? -1, shown: stdout + stderr }
}
