import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync } from 'node:fs'
import { emptyFolder } from '../nodes/node.ts'
import { until } from '../support/until.ts'

/** A container with Debian 13 and systemd, without parley. */
export interface DebianMachine {
  /** Its root folder. */
  root: string
  /** Runs a line of a shell there as root. Never rejects. */
  run(line: string, place?: Place): { status: number; said: string }
  stop(): Promise<void>
}

interface Place {
  folder?: string
  /** In the network of this machine, which may reach registries of packages. */
  isOutside?: boolean
}

/** Fills a folder with the files of Debian 13, in half the time of debootstrap. */
export function installDebian(root: string, packages: readonly string[] = []): void {
  const wanted = packages.length === 0 ? [] : [`--include=${packages.join(',')}`]
  execFileSync('mmdebstrap', ['--quiet', '--variant=minbase', ...wanted, 'trixie', root], { stdio: 'pipe' })
  // Its users must be able to enter it.
  chmodSync(root, 0o755)
}

/** @param network that of this machine, or a separate one that reaches nothing and may have bridges */
export async function startDebian(
  packages: readonly string[],
  network: 'shared' | 'own' = 'shared',
): Promise<DebianMachine> {
  const root = emptyFolder('debian')
  installDebian(root, ['systemd', ...packages])
  const own = network === 'own' ? ['--private-network', '--capability=CAP_NET_ADMIN'] : []
  const machine = spawn(
    'systemd-nspawn',
    ['--quiet', '--register=no', '--keep-unit', '--boot', ...own, '-D', root],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  // Also when a step below fails: with its first process, all others of the machine end.
  const kill = () => machine.kill('SIGKILL')
  process.once('exit', kill)
  const ended = new Promise<void>(resolve => machine.on('close', () => resolve()))
  const init = await until(
    () => Promise.resolve(initOf(machine.pid ?? 0)),
    pid => pid !== undefined,
  )
  const run: DebianMachine['run'] = (line, { folder = '/', isOutside = false } = {}) => {
    const spaces = ['-t', String(init), '-m', '-u', '-i', '-p', ...(isOutside ? [] : ['-n'])]
    const inside = [...spaces, '--', 'env', '-i', `PATH=${PATH}`, 'HOME=/root']
    try {
      const said = execFileSync('nsenter', [...inside, 'sh', '-c', `cd ${folder} && exec 2>&1; ${line}`], {
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
      process.off('exit', kill)
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
