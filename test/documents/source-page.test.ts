import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Paths in backticks and in links: files with an ending, and folders with a slash at their end. */
function pathsIn(page: string): string[] {
  const quoted = [...page.matchAll(/`((?:\.\.\/)?[\w.-]+(?:\/[\w.-]+)*(?:\/|\.ts))`/g)].map(
    ([, path]) => path,
  )
  const linked = [...page.matchAll(/\]\(([^)#:]+)\)/g)].map(([, path]) => path)
  return [...quoted, ...linked].filter(path => path !== undefined)
}

test('every file and folder that the pages for contributors name exists', () => {
  const [page, decisions] = ['README.md', 'DECISIONS.md'].map(name =>
    pathsIn(readFileSync(`${root}src/${name}`, 'utf8')),
  )
  const paths = [...(page ?? []), ...(decisions ?? [])]
  expect(page?.length).toBeGreaterThan(40)
  expect(decisions?.length).toBeGreaterThan(1)
  // Some pages name the files of these folders without the folder.
  const folders = ['src/', 'src/engine/deletions/', 'src/engine/due/', 'src/api/governor/']
  const missing = paths.filter(path => !folders.some(folder => existsSync(`${root}${folder}${path}`)))
  expect(missing).toEqual([])
})

const firstPage = readFileSync(`${root}README.md`, 'utf8')
const links = [...firstPage.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, path = '']) => path)

test('every file and folder that the first page links to exists', () => {
  expect(links.filter(path => !existsSync(`${root}${path}`))).toEqual([])
})

test('the first page says which of its links lead to files that the npm package lacks', () => {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts']
  const [packed] = JSON.parse(execFileSync('npm', args, { cwd: root, encoding: 'utf8' }))
  const paths: string[] = packed.files.map(({ path }: { path: string }) => path)
  const [, named = ''] = /^The npm package has no pages about the source: (.*)$/m.exec(firstPage) ?? []
  const folders = [...named.matchAll(/`([^`]+)`/g)].map(([, folder = '']) => folder)
  const missing = links.filter(link => !paths.some(path => path.startsWith(link)))
  expect(missing.filter(link => !folders.some(folder => link.startsWith(folder)))).toEqual([])
  expect(folders.filter(folder => !missing.some(link => link.startsWith(folder)))).toEqual([])
})
