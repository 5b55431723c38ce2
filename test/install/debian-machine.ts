import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync } from 'node:fs'
import { emptyFolder } from '../nodes/node.ts'
import { until } from '../support/until.ts'

/** A container with Debian 13 and systemd, without parley. It shares the network of this machine. */
export interface DebianMachine {
  /** Its root folder. */
  root: string
  /** Runs a line of a shell there as root. Never rejects. */
  run(line: string, env?: Readonly<Record<string, string>>): { status: number; said: string }
  stop(): Promise<void>
}

export async function startDebian(packages: readonly string[]): Promise<DebianMachine> {
  const root = emptyFolder('debian')
  // In half the time of debootstrap.
  const wanted = `--include=systemd,${packages.join(',')}`
  execFileSync('mmdebstrap', ['--quiet', '--variant=minbase', wanted, 'trixie', root], { stdio: 'pipe' })
  // Its users must be able to enter it.
  chmodSync(root, 0o755)
  const machine = spawn('systemd-nspawn', ['--quiet', '--register=no', '--keep-unit', '--boot', '-D', root], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const ended = new Promise<void>(resolve => machine.on('close', () => resolve()))
  const init = await until(
    () => Promise.resolve(initOf(machine.pid ?? 0)),
    pid => pid !== undefined,
  )
  const run: DebianMachine['run'] = (line, env = {}) => {
    const settings = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    const inside = [
      '-t',
      String(init),
      '-m',
      '-u',
      '-i',
      '-p',
      '--',
      'env',
      '-i',
      `PATH=${PATH}`,
      ...settings,
    ]
    try {
      const said = execFileSync('nsenter', [...inside, 'sh', '-c', `cd / && exec 2>&1; ${line}`], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      return { status: 0, said }
    } catch (error) {
      if (!(error instanceof Error && 'status' in error && 'stdout' in error)) throw error
      return { status: Number(error.status), said: String(error.stdout) }
    }
  }
  await until(
    () => Promise.resolve(run('systemctl is-system-running').said.trim()),
    state => state === 'running' || state === 'degraded',
  )
  return {
    root,
    run,
    async stop() {
      run('systemctl poweroff')
      await ended
      execFileSync('rm', ['-rf', '--one-file-system', root])
    },
  }
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin'

/** The first process of a machine, in the numbers of this one; undefined before it is there. */
function initOf(nspawn: number): number | undefined {
  const processes = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  const status = processes.flatMap(pid => {
    try {
      return [{ pid: Number(pid), text: readFileSync(`/proc/${pid}/status`, 'utf8') }]
    } catch {
      return []
    }
  })
  const parents = new Map(status.map(({ pid, text }) => [pid, Number(/^PPid:\s+(\d+)/m.exec(text)?.[1])]))
  const isBelow = (pid: number): boolean =>
    pid === nspawn || (parents.has(pid) && parents.get(pid) !== 0 && isBelow(parents.get(pid) ?? 0))
  return status.find(({ pid, text }) => /^NSpid:.*\s1$/m.test(text) && pid !== nspawn && isBelow(pid))?.pid
}
