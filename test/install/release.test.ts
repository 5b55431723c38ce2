import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Bom, notesOf, withVersion } from '../../systemd/release/contents.ts'
import { emptyFolder, ROOT } from '../nodes/node.ts'
import { type Release, refusalWith, release, VERSION } from './release.ts'

/** The files of a release, as `npm version` and `npm run release` make them in a clean clone. */

let made: Release
let bom: Bom
let bomText: string
beforeAll(() => {
  made = release()
  bomText = readFileSync(made.file('.cdx.json'), 'utf8')
  bom = JSON.parse(bomText)
})

test('npm version names the section of the changelog, commits it and tags it', () => {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: made.clone, encoding: 'utf8' })
  expect(git('tag', '--points-at', 'HEAD')).toBe(`v${VERSION}\n`)
  expect(git('show', 'HEAD:CHANGELOG.md')).toMatch(
    new RegExp(`^## Unreleased\n\n## ${VERSION} \\(\\d{4}-\\d\\d-\\d\\d\\)\n\n\\S`, 'm'),
  )
})

test('a release has the packages, the bill of materials, the notes and the checksums of all of them', () => {
  const sums = readFileSync(made.file('SHA256SUMS'), 'utf8')
  const architecture = execFileSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).trim()
  expect(sums.match(/\S+$/gm)).toEqual([
    `parleyd-${VERSION}.cdx.json`,
    `parleyd-${VERSION}.md`,
    `parleyd-${VERSION}.tgz`,
    `parleyd_${VERSION}-1_${architecture}.deb`,
  ])
  for (const [, sum, name = ''] of sums.matchAll(/^(\S+) {2}(\S+)$/gm))
    expect(
      createHash('sha256')
        .update(readFileSync(made.file(name)))
        .digest('hex'),
      name,
    ).toBe(sum)
  const changelog = readFileSync(join(made.clone, 'CHANGELOG.md'), 'utf8')
  expect(readFileSync(made.file('.md'), 'utf8').trim()).toBe(notesOf(changelog, VERSION))
})

test('the same commit gives the same packages in another folder and with another umask', () => {
  const again = emptyFolder('again')
  const env = { ...process.env, TMPDIR: emptyFolder('other') }
  const before = process.umask(0o077)
  execFileSync('npm', ['pack', '--silent', '--pack-destination', again], { cwd: made.clone, env })
  const tarball = join(again, basename(made.file('.tgz')))
  const build = join(made.clone, 'systemd/debian/build.sh')
  execFileSync(build, [again, tarball], { env, stdio: 'pipe' })
  process.umask(before)
  for (const end of ['.tgz', '.deb'])
    expect(
      readFileSync(join(again, basename(made.file(end)))).equals(readFileSync(made.file(end))),
      end,
    ).toBe(true)
})

describe('the bill of materials', () => {
  const idOf = ({ name, version }: { name: string; version: string }) => `${name}@${version}`

  test('has the form of CycloneDX 1.5', () => {
    expect(bom).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.5', version: 1 })
    expect(bom.metadata.component).toMatchObject({
      type: 'application',
      name: 'parleyd',
      version: VERSION,
      purl: `pkg:npm/parleyd@${VERSION}`,
    })
    const refs = [bom.metadata.component, ...bom.components].map(component => component['bom-ref'])
    expect(new Set(refs).size).toBe(refs.length)
    expect(bom.dependencies.map(({ ref }) => ref).filter(ref => !refs.includes(ref))).toEqual([])
    expect(
      bom.dependencies.flatMap(({ dependsOn = [] }) => dependsOn).filter(ref => !refs.includes(ref)),
    ).toEqual([])
    for (const component of bom.components) {
      expect(component).toMatchObject({
        type: 'library',
        name: expect.any(String),
        version: expect.stringMatching(/^\d/),
        scope: expect.stringMatching(/^(required|excluded)$/),
        purl: expect.stringMatching(/^pkg:(npm|generic)\/[%\w./-]+@[\w.-]+$/),
      })
      for (const { alg, content } of component.hashes ?? [])
        expect(`${alg} ${content}`).toMatch(/^SHA-512 [0-9a-f]{128}$/)
    }
  })

  test('names each module of the Debian package with its version, and no other as shipped', () => {
    const content = emptyFolder('content')
    execFileSync('dpkg-deb', ['-x', made.file('.deb'), content])
    const shipped = readdirSync(content, { recursive: true, encoding: 'utf8' })
      .filter(path => /\/node_modules\/(@[^/]+\/)?[^@/]+\/package\.json$/.test(path))
      .map(path => idOf(JSON.parse(readFileSync(join(content, path), 'utf8'))))
    expect(shipped).toContain('better-sqlite3@12.11.1')
    const required = bom.components.filter(({ scope, name }) => scope === 'required' && name !== 'sqlite')
    expect(required.map(idOf).sort()).toEqual([...new Set(shipped)].sort())
  })

  test('names the SQLite of both native modules', () => {
    const { dependencies } = bom
    const inside = dependencies.filter(({ ref }) => ref.startsWith('better-sqlite3@'))
    expect(inside.map(({ dependsOn = [] }) => dependsOn.filter(ref => ref.startsWith('sqlite@')))).toEqual([
      [expect.stringMatching(/^sqlite@3\.\d+\.\d+$/)],
      [expect.stringMatching(/^sqlite@3\.\d+\.\d+$/)],
    ])
  })

  test('has the direct dependencies of package.json and none that only development needs', () => {
    const { dependencies, optionalDependencies, devDependencies } = JSON.parse(
      readFileSync(join(ROOT, 'package.json'), 'utf8'),
    )
    const names = bom.components.map(idOf)
    for (const [name, version] of Object.entries({ ...dependencies, ...optionalDependencies }))
      expect(names).toContain(`${name}@${version}`)
    for (const [name, version] of Object.entries(devDependencies))
      expect(names).not.toContain(`${name}@${version}`)
  })

  test('has no path of the machine and no address of a registry', () => {
    expect(bomText).not.toContain(made.clone)
    expect(bomText).not.toMatch(/:\/\/|registry\.|\/tmp/)
  })
})

test.each([
  [
    'without a section of its version',
    '# Changelog\n\n## Unreleased\n\n- A change.\n',
    /no section of version/,
  ],
  ['with changes that are not committed', undefined, /not committed:\nM CHANGELOG\.md/],
])('no release is made %s', (_, changelog, said) => {
  const text = changelog ?? `${readFileSync(join(made.clone, 'CHANGELOG.md'), 'utf8')}\n`
  expect(refusalWith(text)).toMatch(said)
})

test.each([
  ['a section with text', '# C\n\n## Unreleased\n\n- New.\n\n## 0.1.0\n\n- Old.\n', '- New.'],
  ['text up to the end', '# C\n\n## Unreleased\n\n### Mended\n\n- New.\n', '### Mended\n\n- New.'],
])('the changelog names the next version above %s', (_, changelog, notes) => {
  const named = withVersion(changelog, '0.2.0', '2026-11-26')
  expect(notesOf(named, '0.2.0')).toBe(notes)
  expect(notesOf(named, 'Unreleased')).toBeUndefined()
  expect(notesOf(named, '0.1.0')).toBe(notesOf(changelog, '0.1.0'))
  expect(() => withVersion(named, '0.3.0', '2026-11-27')).toThrow(/expected text/)
})
