import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type NotifierProcess, startNotifier } from './notifier-process.ts'
import { type NotifySocket, openNotifySocket } from './notify-socket.ts'
import { requirePrograms } from './tools.ts'

/** 300 ms, so that a sign of life is sent every 100 ms. */
const WATCHDOG = { WATCHDOG_USEC: '300000' }

beforeAll(() => requirePrograms('systemd-notify', 'python3'))

const newFolder = () => mkdtempSync(join(tmpdir(), 'parley-notify-'))

describe('a daemon under systemd', () => {
  let socket: NotifySocket
  let notifier: NotifierProcess

  beforeEach(async () => {
    socket = await openNotifySocket(join(newFolder(), 'notify'))
  })
  afterEach(() => socket.close())

  function start(env: Readonly<Record<string, string>> = {}, options?: { manual: boolean }) {
    notifier = startNotifier({ NOTIFY_SOCKET: socket.path, ...env }, options)
    return notifier
  }

  /** The reported states, without the name of the process. */
  async function heard() {
    const message = await socket.next()
    expect(message).toContain(`MAINPID=${notifier.pid}`)
    return message.filter(line => !line.startsWith('MAINPID=')).sort()
  }

  test('the daemon says when it is ready, what it does, that it reloads its settings, and that it stops, in this order', async () => {
    const { tell, end } = start()
    tell(['ready', 'reading everything'], ['reloading'], ['ready', 'idle'], ['stopping'])
    expect(await heard()).toEqual(['READY=1', 'STATUS=reading everything'])
    expect(await heard()).toEqual(['RELOADING=1'])
    expect(await heard()).toEqual(['READY=1', 'STATUS=idle'])
    expect(await heard()).toEqual(['STOPPING=1'])
    expect(await end()).toEqual({ status: 0, lines: [], stderr: '' })
  })

  test('every message is sent before the daemon ends, though it ends at once', async () => {
    const { tell, end } = start()
    tell(['ready', 'idle'], ['stopping'])
    const ended = end()
    expect(await heard()).toEqual(['READY=1', 'STATUS=idle'])
    expect(await heard()).toEqual(['STOPPING=1'])
    expect((await ended).status).toBe(0)
  })

  test('the daemon says why it stops', async () => {
    const { tell, end } = start()
    tell(['ready', 'running'], ['stopping', 'the API grants no access'])
    expect(await heard()).toEqual(['READY=1', 'STATUS=running'])
    expect(await heard()).toEqual(['STATUS=the API grants no access', 'STOPPING=1'])
    await end()
  })

  test('the daemon says what it does in one line of at most 200 characters', async () => {
    const { tell, end } = start()
    tell(['ready', ' two\nREADY=1\r\n\tlines\0\u0085and\u2028more '])
    expect(await heard()).toEqual(['READY=1', 'STATUS=two READY=1 lines and more'])
    tell(['ready', 'é'.repeat(200)])
    expect(await heard()).toEqual(['READY=1', `STATUS=${'é'.repeat(200)}`])
    tell(['ready', '🦜'.repeat(201)])
    expect(await heard()).toEqual(['READY=1', `STATUS=${'🦜'.repeat(199)}…`])
    tell(['ready', '--ready \ud800'])
    expect(await heard()).toEqual(['READY=1', 'STATUS=--ready \ufffd'])
    await end()
  })

  test('the daemon sends watchdog signals while it lives', async () => {
    const { tell, end } = start(WATCHDOG)
    tell(['watchdog'])
    for (let count = 0; count < 5; count += 1) expect(await heard()).toEqual(['WATCHDOG=1'])
    await end()
  })

  test('the daemon sends a watchdog signal at each third of the interval', async () => {
    const { tell, nextLine, end } = start(WATCHDOG, { manual: true })
    tell(['watchdog'])
    for (let count = 0; count < 3; count += 1) {
      expect(await nextLine()).toEqual({ sleeping: 100 })
      tell(['wake'])
      expect(await heard()).toEqual(['WATCHDOG=1'])
    }
    await end()
  })

  test('the daemon sends no watchdog signal while the engine gives none', async () => {
    const { tell, nextLine, end } = start(WATCHDOG, { manual: true })
    tell(['watchdog'], ['alive', 'false'])
    for (let count = 0; count < 3; count += 1) {
      await nextLine()
      tell(['wake'])
    }
    await nextLine()
    tell(['reloading'])
    expect(await heard()).toEqual(['RELOADING=1'])
    tell(['alive', 'true'], ['wake'])
    expect(await heard()).toEqual(['WATCHDOG=1'])
    await end()
  })

  test('the daemon sends no watchdog signal while its event loop is blocked', async () => {
    const { tell, end } = start(WATCHDOG)
    tell(['watchdog'])
    expect(await heard()).toEqual(['WATCHDOG=1'])
    tell(['block', '1000'])
    const said: string[] = []
    for (let last = ''; last !== 'STATUS=unblocked'; said.push(last))
      last = (await socket.next()).sort().at(-1) ?? ''
    // One may have been on its way already.
    expect(said.slice(said.indexOf('STATUS=blocked') + 1, -1).length).toBeLessThanOrEqual(1)
    expect(await heard()).toEqual(['WATCHDOG=1'])
    await end()
  })

  test.each([
    ['nobody waits for any', {}],
    ['those of another process are waited for', { ...WATCHDOG, WATCHDOG_PID: '1' }],
    ['the interval cannot be read', { WATCHDOG_USEC: 'soon' }],
  ])('the daemon sends no watchdog signal when %s', async (_, env) => {
    const { tell, end } = start(env, { manual: true })
    tell(['watchdog'])
    expect(await end()).toEqual({ status: 0, lines: [], stderr: '' })
  })
})

describe('a program in place of systemd-notify', () => {
  /** Notes its arguments and its end in a file of its folder. */
  function fakeNotify(does: string) {
    const folder = newFolder()
    const notes = join(folder, 'notes')
    const program = `#!${process.execPath}
      const { appendFileSync } = require('node:fs')
      const note = value => appendFileSync(${JSON.stringify(notes)}, JSON.stringify(value) + '\\n')
      note({ words: process.argv.slice(2), env: process.env })
      ${does}
      note('end')`
    writeFileSync(join(folder, 'systemd-notify'), program)
    chmodSync(join(folder, 'systemd-notify'), 0o755)
    return {
      env: { PATH: folder, NOTIFY_SOCKET: '/nowhere' },
      notes: () =>
        (existsSync(notes) ? readFileSync(notes, 'utf8').trim().split('\n') : []).map(line =>
          JSON.parse(line),
        ),
    }
  }

  /** Leaves out the process id, which comes first. */
  const wordsIn = (notes: { words?: string[] }[]) => notes.map(note => note.words?.slice(1) ?? note)

  test('no program is started without NOTIFY_SOCKET', async () => {
    const { env, notes } = fakeNotify('')
    const { tell, end } = startNotifier({ ...env, ...WATCHDOG, NOTIFY_SOCKET: '' }, { manual: true })
    tell(['ready', 'idle'], ['watchdog'], ['reloading'], ['stopping'])
    expect(await end()).toEqual({ status: 0, lines: [], stderr: '' })
    expect(notes()).toEqual([])
  })

  test('the program gets only the socket and the search path of the environment', async () => {
    const { env, notes } = fakeNotify('')
    const { tell, pid, end } = startNotifier({ ...env, PARLEY_API_KEY: 'key-that-nobody-may-see' })
    tell(['ready', 'idle'])
    await end()
    expect(notes()).toEqual([{ words: [`--pid=${pid}`, '--ready', '--status=idle'], env }, 'end'])
  })

  test('one program runs at a time', async () => {
    const { env, notes } = fakeNotify('')
    const { tell, end } = startNotifier(env)
    tell(['ready', 'idle'], ['reloading'], ['stopping'])
    await end()
    expect(wordsIn(notes())).toEqual([
      ['--ready', '--status=idle'],
      'end',
      ['RELOADING=1'],
      'end',
      ['STOPPING=1'],
      'end',
    ])
  })

  test.each([
    [
      'fails',
      'console.error("Failed to notify init system: Connection refused"); process.exit(1)',
      /^Failed to notify init system: Connection refused$/,
    ],
    ['fails silently', 'process.exit(3)', /^exit status 3$/],
    ['is killed', 'process.kill(process.pid, "SIGKILL")', /^exit status SIGKILL$/],
  ])('a program that %s is a single warning', async (_, does, reason) => {
    const { env } = fakeNotify(does)
    const { tell, end } = startNotifier(env)
    tell(['ready', 'idle'], ['reloading'], ['stopping'])
    const { status, lines, stderr } = await end()
    expect([status, stderr]).toEqual([0, ''])
    expect(lines).toEqual([expect.objectContaining({ level: 'warn', reason: expect.stringMatching(reason) })])
  })

  test('a missing program is a single warning', async () => {
    const { tell, end } = startNotifier({ PATH: newFolder(), NOTIFY_SOCKET: '/nowhere' })
    tell(['ready', 'idle'], ['stopping'])
    const { status, lines } = await end()
    expect(status).toBe(0)
    expect(lines).toEqual([expect.objectContaining({ level: 'warn', reason: 'it is not in PATH' })])
  })
})
