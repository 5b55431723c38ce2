import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const FOLDER = new URL('..', import.meta.url).pathname

/** What only files of these names do, since it takes long: they are not part of `npm test`. */
const LONG_NAME = /^(page|nodes|install|engines)\/|\.(process|long)\.test\.ts$/
const LONG_WORK: [what: string, isDone: (path: string, text: string) => boolean][] = [
  ['runs a daemon', (_, text) => /\b(startDaemon|daemonInProcess|startDaemonTrial)\(/.test(text)],
  ['publishes to a bucket', (path, text) => /^publish\/s3\//.test(path) && /\bpublish(To|All)\(/.test(text)],
]

const complaintsOf = (path: string, text: string): string[] =>
  LONG_NAME.test(path)
    ? []
    : LONG_WORK.filter(([, isDone]) => isDone(path, text)).map(
        ([what]) => `${path} ${what}: name it ${path.replace('.test.ts', '.process.test.ts')}`,
      )

test('a test file that runs a daemon or publishes to a bucket is named *.process.test.ts', () => {
  const paths = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter(
    path => path.endsWith('.test.ts') && !path.startsWith('architecture/'),
  )
  expect(paths.length).toBeGreaterThan(250)
  expect(paths.flatMap(path => complaintsOf(path, readFileSync(join(FOLDER, path), 'utf8')))).toEqual([])
})

test.each([
  ['cli/fleet.test.ts', 'await startDaemon(context, place)', 'runs a daemon'],
  ['daemon/hooks.test.ts', 'await daemonInProcess(context, {})', 'runs a daemon'],
  ['publish/s3/ranges.test.ts', 'await publishTo(await bucketOf(fake), path)', 'publishes to a bucket'],
])('%s is refused when it has %s', (path, text, what) => {
  const name = path.replace('.test.ts', '.process.test.ts')
  expect(complaintsOf(path, text)).toEqual([`${path} ${what}: name it ${name}`])
  expect(complaintsOf(name, text)).toEqual([])
})

/** Folders of the project, and what git, npm, Docker and the tools of the tests read at this place. */
const TOP_LEVEL = [
  ...['.ci', 'config', 'drizzle', 'src', 'systemd', 'test', 'CHANGELOG.md', 'LICENSE', 'README.md'],
  ...['.gitignore', '.npmrc', 'package.json', 'package-lock.json', 'tsconfig.json', 'biome.json'],
  ...['Dockerfile', 'compose.yaml'],
]

test('no file that a run has left at the top level is committed', () => {
  const listed = execFileSync('git', ['ls-files', '-z'], { cwd: join(FOLDER, '..'), encoding: 'utf8' })
  const names = new Set(listed.split('\0').map(path => path.split('/', 1)[0] ?? ''))
  expect([...names].filter(name => name !== '' && !TOP_LEVEL.includes(name))).toEqual([])
})
