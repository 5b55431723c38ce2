import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { parley, parleyAfter, parleyProcess } from './parley.ts'

const manifest: { version: string } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
)

test('--version prints the version alone', async () => {
  expect(await parley(['--version'])).toEqual({ status: 0, stdout: `${manifest.version}\n`, stderr: '' })
})

test.each([['--help'], ['-h'], ['help']])('parley %s prints the help to standard output', async flag => {
  const { status, stdout, stderr } = await parley([flag])
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toMatch(/^Usage: parley/)
  expect(stdout).toMatch(/\n {2}init +\S/)
})

test('the help has the commands in the order of their first use, every exit status and the pages to read', async () => {
  const { stdout } = await parley(['--help'])
  const [, commands = '', after = ''] = /\nCommands:\n(.*?)\n\n(.*)/s.exec(stdout) ?? []
  const names = [...commands.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name]) => name)
  expect(names.slice(0, 5)).toEqual(['init', 'doctor', 'backfill', 'daemon', 'status'])
  const [, statuses = '', pages = ''] = /\nExit status:\n(.*?)\n\n(.*)/s.exec(after) ?? []
  expect([...statuses.matchAll(/^ {2}(\d+) +\S/gm)].map(([, status]) => Number(status))).toEqual(
    Object.values(EXIT_STATUS),
  )
  const named = [...pages.matchAll(/^ {2}(\S+\.md) +\S/gm)].map(([, page]) => page ?? '')
  expect(named.length).toBeGreaterThan(3)
  for (const page of named) expect(existsSync(new URL(`../../${page}`, import.meta.url))).toBe(true)
})

test('parley alone is wrong usage and prints the help to standard error', async () => {
  const { status, stdout, stderr } = await parley([])
  expect({ status, stdout }).toEqual({ status: EXIT_STATUS.usage, stdout: '' })
  expect(stderr).toMatch(/^Usage: parley/)
})

test('the help of every command has an example, and parley help COMMAND prints the same', async () => {
  const { stdout } = await parley(['--help'])
  const section = /\nCommands:\n(.*?)\n\n/s.exec(stdout)?.[1] ?? ''
  const commands = [...section.matchAll(/^ {2}([a-z-]+) /gm)].flatMap(([, name]) => name ?? [])
  const explained = commands.filter(name => name !== 'help')
  expect(explained).toContain('init')
  for (const name of explained) {
    const help = await parley([name, '--help'])
    expect(help.status).toBe(0)
    expect(help.stdout).toMatch(new RegExp(`\\nExamples:\\n  \\$ parley ${name}\\b`))
    expect(await parley(['help', name])).toEqual(help)
  }
})

test.each<[args: string[], message: string, hint: string]>([
  [['ini'], "unknown command 'ini'", 'Did you mean init? Run parley --help for the usage.'],
  [['nonsense', '--help'], "unknown command 'nonsense'", 'Run parley --help for the usage.'],
  [['help', 'nonsense'], "unknown command 'nonsense'", 'Run parley --help for the usage.'],
  [['--nonsense'], "unknown option '--nonsense'", 'Run parley --help for the usage.'],
  [
    ['--config', 'acme.toml', 'status'],
    "unknown option '--config'",
    'Write options after the command. Run parley --help for the usage.',
  ],
  [
    ['--json', 'status'],
    "unknown option '--json'",
    'Write options after the command. Run parley status --help for the usage.',
  ],
  [
    ['init', '--forc'],
    "unknown option '--forc'",
    'Did you mean --force? Run parley init --help for the usage.',
  ],
  [
    ['init', 'x'],
    "too many arguments for 'init'. Expected 0 arguments but got 1.",
    'Run parley init --help for the usage.',
  ],
  [
    ['init', '--config'],
    "option '--config <file>' argument missing",
    'Run parley init --help for the usage.',
  ],
  [
    ['search', 'renewal', '--kind', 'message', '--kind=transcript'],
    "option '--kind <kinds>' is given more than once",
    'Give it once, with commas between its values. Run parley search --help for the usage.',
  ],
  [
    ['backfill', '--only', 'teams', '--only', 'members'],
    "option '--only <names>' is given more than once",
    'Give it once, with commas between its values. Run parley backfill --help for the usage.',
  ],
])('%j is wrong usage, with a hint', async (args, message, hint) => {
  expect(await parley(args)).toEqual({
    status: EXIT_STATUS.usage,
    stdout: '',
    stderr: `parley: ${message}\nhint: ${hint}\n`,
  })
})

test.each<[args: string[], message: string]>([
  [['backfill', '--json', '--nope'], "unknown option '--nope'"],
  [['backfill', '--json', 'extra'], "too many arguments for 'backfill'"],
  [['backfill', '--config', '', '--json'], "option '--config <file>' argument '' is invalid"],
  [['--json', 'backfill'], "unknown option '--json'"],
])('%j prints the error as JSON too', async (args, message) => {
  const { status, stdout, stderr } = await parley(args)
  expect([status, stderr]).toEqual([EXIT_STATUS.usage, expect.stringContaining(message)])
  expect(JSON.parse(stdout)).toEqual({
    exit_status: EXIT_STATUS.usage,
    error: { code: 'bad-arguments', message: expect.stringContaining(message), hint: expect.any(String) },
  })
})

test('a reader that closes the pipe early causes no error', async () => {
  expect(await parleyProcess(['init', '--stdout'], { deaf: true })).toEqual({
    status: 0,
    stdout: '',
    stderr: '',
  })
})

test('in a folder that was removed, --version works, and a command that needs the folder says so', async () => {
  const leave = 'mkdir gone && cd gone && rmdir ../gone'
  expect(await parleyAfter(leave, ['--version'])).toMatchObject({ status: EXIT_STATUS.done, stderr: '' })
  const { status, stderr } = await parleyAfter(leave, ['status'])
  expect(status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(stderr).toBe(
    'parley: The current folder cannot be used (ENOENT)\nhint: It may have been removed or renamed. Change to another folder, such as: cd ~\n',
  )
})

test.each([
  [['restore', ''], "'file'"],
  [['snapshot', ''], "'file'"],
  [['status', '--config', ''], "'--config <file>'"],
  [['status', '--all', ''], "'--all [folder]'"],
])('parley %j refuses the empty text and names what it is for', async (args, name) => {
  const { status, stdout, stderr } = await parley(args)
  expect({ status, stdout }).toEqual({ status: EXIT_STATUS.usage, stdout: '' })
  expect(stderr).toContain(name)
  expect(stderr).toContain('Expected a value, and it is empty.')
})
