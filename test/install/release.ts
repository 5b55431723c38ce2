import { execFileSync, spawnSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../nodes/node.ts'

export const VERSION = '987.6.5'
const MODULES = ['node_modules', 'src/store/database/node-20/node_modules']

export interface Release {
  clone: string
  /** The path of the file whose name ends with this. */
  file(end: string): string
}

/** A release of the files as they are now, with another version. It is made once for all files of tests. */
export function release(): Release {
  const clone = join(tmpdir(), 'release')
  const folder = join(clone, 'release', VERSION)
  if (!existsSync(clone)) makeRelease(clone)
  const files = readdirSync(folder)
  return {
    clone,
    file(end) {
      const name = files.find(each => each.endsWith(end))
      if (name === undefined) throw new Error(`${end}: not among ${files.join(', ')}`)
      return join(folder, name)
    },
  }
}

function makeRelease(clone: string): void {
  mkdirSync(clone)
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { cwd: clone, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  for (const file of listed.split('\0').filter(name => name !== '' && existsSync(join(ROOT, name))))
    cpSync(join(ROOT, file), join(clone, file))
  run('git', 'init', '--quiet')
  for (const modules of MODULES) {
    if (existsSync(join(ROOT, modules))) symlinkSync(join(ROOT, modules), join(clone, modules))
    appendFileSync(join(clone, '.git/info/exclude'), `/${modules}\n`)
  }
  run('git', 'config', 'user.name', 'A maintainer')
  run('git', 'config', 'user.email', 'maintainer@example.com')
  run('git', 'add', '.')
  run('git', 'commit', '--quiet', '--message', 'Begin')
  run('npm', 'version', VERSION)
  run('npm', 'run', '--silent', 'release')
}

/** What `npm run release` says in the clone with another changelog, which it must refuse. */
export function refusalWith(changelog: string): string {
  const { clone } = release()
  const path = join(clone, 'CHANGELOG.md')
  writeFileSync(path, changelog)
  const { status, stderr } = spawnSync('npm', ['run', '--silent', 'release'], {
    cwd: clone,
    encoding: 'utf8',
  })
  execFileSync('git', ['checkout', '--quiet', 'CHANGELOG.md'], { cwd: clone })
  if (status === 0) throw new Error('a release was made')
  return stderr
}
