import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Without the settings of the npm that runs these tests: the package `node` needs its install script, for example. */
const ENVIRONMENT = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')),
)

export type NodeProcess = ReturnType<ReturnType<typeof installNode>>

/**
 * Installs a Node and an npm, which the registry has as packages.
 * @returns starts a command in a folder, with that Node and npm first on the path
 */
export function installNode(node: string, npm: string) {
  const tools = emptyFolder('node')
  npmInstall(['--prefix', tools, `node@${node}`, `npm@${npm}`])
  const path = [join(tools, 'node_modules/.bin'), process.env['PATH']].join(delimiter)
  return (
    command: string,
    args: readonly string[],
    { cwd, env = {} }: { cwd: string; env?: Readonly<Record<string, string>> },
  ) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...ENVIRONMENT, PATH: path, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const status = new Promise<number | string | null>(resolve => {
      child.on('close', resolve)
      // Where the installation before has failed, there is no such command, and nothing closes.
      child.on('error', ({ message }) => resolve(message))
    })
    const ended = Promise.all([status, text(child.stdout), text(child.stderr)])
    return { child, ended: ended.then(([code, out, err]) => ({ status: code, said: out + err })) }
  }
}

export function npmInstall(args: readonly string[]): void {
  execFileSync('npm', ['install', ...args], { env: ENVIRONMENT, stdio: 'pipe' })
}

export const emptyFolder = (name: string) => mkdtempSync(join(tmpdir(), `parley-${name}-`))
