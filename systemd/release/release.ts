import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { billOfMaterials, type Lock, notesOf, withVersion } from './contents.ts'

/**
 * `npm run release` makes the files of a release from a clean clone. `npm version` runs this file with the argument
 * `changelog`, which names the section of the version. README.md in this folder says how to make a release.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const run = (command: string, args: readonly string[], cwd = ROOT) =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim()

const program = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  name: string
  version: string
  license: string
}
const { version } = program
const changelogPath = join(ROOT, 'CHANGELOG.md')
const changelog = readFileSync(changelogPath, 'utf8')

if (process.argv[2] === 'changelog')
  writeFileSync(changelogPath, withVersion(changelog, version, new Date().toISOString().slice(0, 10)))
else {
  const work = mkdtempSync(join(tmpdir(), 'parley-release-'))
  try {
    process.stdout.write(`${makeRelease(work)}\n`)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
    process.exitCode = 1
  } finally {
    rmSync(work, { recursive: true })
  }
}

/** @returns the checksums of the files */
function makeRelease(work: string): string {
  const notes = notesOf(changelog, version)
  if (notes === undefined)
    throw new Error(`CHANGELOG.md has no section of version ${version}: run npm version first`)
  const changes = run('git', ['status', '--porcelain'])
  if (changes !== '')
    throw new Error(`The clone has changes that are not committed:\n${changes}\nCommit or remove them.`)
  const seconds = run('git', ['log', '-1', '--format=%ct'])
  process.env['SOURCE_DATE_EPOCH'] = seconds

  const target = join(ROOT, 'release', version)
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target, { recursive: true })
  const tarball = join(target, run('npm', ['pack', '--silent', '--pack-destination', target]))
  run(join(ROOT, 'systemd/debian/build.sh'), [target, tarball])
  const deb = readdirSync(target).find(name => name.endsWith('.deb')) ?? ''
  run('dpkg-deb', ['-x', join(target, deb), join(work, 'deb')])

  const instant = new Date(Number(seconds) * 1000).toISOString()
  const locks = [ROOT, join(ROOT, 'src/store/database/node-20')].map(
    folder => JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as Lock,
  )
  const bom = billOfMaterials(program, locks, { ...shippedIn(join(work, 'deb/usr/lib/parleyd')), instant })
  writeFileSync(join(target, `parleyd-${version}.cdx.json`), `${JSON.stringify(bom, null, 2)}\n`)
  writeFileSync(join(target, `parleyd-${version}.md`), `${notes}\n`)
  const sums = readdirSync(target)
    .sort()
    .map(
      name =>
        `${createHash('sha256')
          .update(readFileSync(join(target, name)))
          .digest('hex')}  ${name}\n`,
    )
  writeFileSync(join(target, 'SHA256SUMS'), sums.join(''))
  return `release/${version}:\n${sums.join('')}`
}

/** The modules below a folder, and the version of SQLite in each native one. */
function shippedIn(folder: string): { modules: Set<string>; sqlite: Map<string, string> } {
  const modules = new Set<string>()
  const sqlite = new Map<string, string>()
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const [, module] = /^(.*node_modules\/(?:@[^/]+\/[^/]+|[^@/][^/]*))\//.exec(path) ?? []
    if (module === undefined) continue
    const content = readFileSync(join(folder, module, 'package.json'), 'utf8')
    const named = JSON.parse(content) as { name: string; version: string }
    const id = `${named.name}@${named.version}`
    modules.add(id)
    if (!path.endsWith('.node')) continue
    const [, found] = /(3\.\d\d\.\d+)\0/.exec(readFileSync(join(folder, path), 'latin1')) ?? []
    if (found === undefined) throw new Error(`${path}: no version of SQLite found`)
    sqlite.set(id, found)
  }
  return { modules, sqlite }
}
