/** What `release.ts` writes, as functions of what it has read. */

const UNRELEASED = '## Unreleased\n'

/** The changelog with the section of the next version named after it, below an empty one. @throws Error without a section */
export function withVersion(changelog: string, version: string, day: string): string {
  if (notesOf(changelog, 'Unreleased') === undefined)
    throw new Error('CHANGELOG.md: expected text below "## Unreleased"')
  return changelog.replace(UNRELEASED, `${UNRELEASED}\n## ${version} (${day})\n`)
}

/** The text of the section of a version; undefined if there is none. */
export function notesOf(changelog: string, version: string): string | undefined {
  const sections = changelog.split(/^## /m).slice(1)
  const section = sections.find(text => text.split(/[\s]/, 1)[0] === version)
  return section?.slice(section.indexOf('\n')).trim() || undefined
}

/** What is used of package-lock.json. */
export interface Lock {
  packages: Readonly<Record<string, LockedModule>>
}

interface LockedModule {
  name?: string
  version?: string
  integrity?: string
  license?: string
  dev?: true
  devOptional?: true
  dependencies?: Readonly<Record<string, string>>
  optionalDependencies?: Readonly<Record<string, string>>
}

/** A bill of materials in CycloneDX 1.5. */
export interface Bom {
  metadata: { timestamp: string; component: Component }
  components: Component[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

interface Component {
  'bom-ref': string
  type: 'application' | 'library'
  name: string
  version: string
  scope: 'required' | 'excluded'
  purl: string
  licenses?: { expression: string }[]
  hashes?: { alg: string; content: string }[]
}

interface Shipped {
  /** The modules in the Debian package, as `name@version`. */
  modules: ReadonlySet<string>
  /** The version of SQLite in each native module. */
  sqlite: ReadonlyMap<string, string>
  /** When the release was committed, so that a second build gives the same file. */
  instant: string
}

/**
 * The modules of the program and of Node 20, and the SQLite inside. npm installs all of them. The Debian package leaves out
 * those that only compile SQLite, and they have the scope "excluded".
 *
 * `npm sbom` cannot make it: without an installed tree it leaves out production modules such as `tslib`.
 */
export function billOfMaterials(
  program: { name: string; version: string; license: string },
  locks: readonly Lock[],
  { modules, sqlite, instant }: Shipped,
): Bom & { bomFormat: string; specVersion: string; version: number } {
  const self = `${program.name}@${program.version}`
  const components = new Map<string, Component>()
  const dependencies = new Map<string, Set<string>>([[self, new Set()]])
  const add = (ref: string, component: Omit<Component, 'bom-ref' | 'type'>) => {
    components.set(ref, { 'bom-ref': ref, type: 'library', ...component })
    dependencies.set(ref, new Set([...(dependencies.get(ref) ?? [])]))
  }
  for (const { packages } of locks) {
    const idAt = (path: string) =>
      path === '' ? self : `${path.replace(/^.*node_modules\//, '')}@${packages[path]?.version}`
    const isKept = (path: string, { dev, devOptional }: LockedModule) =>
      modules.has(idAt(path)) || (dev === undefined && devOptional === undefined)
    const kept = Object.entries(packages).filter(([path, module]) => isKept(path, module))
    for (const [path, { version = '', integrity, license }] of kept) {
      if (path === '') continue
      const name = path.replace(/^.*node_modules\//, '')
      add(idAt(path), {
        name,
        version,
        scope: modules.has(idAt(path)) ? 'required' : 'excluded',
        purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
        ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
        ...(integrity === undefined ? {} : { hashes: [digestOf(integrity)] }),
      })
    }
    for (const [path, { dependencies: needed, optionalDependencies: wanted }] of kept)
      for (const name of Object.keys({ ...needed, ...wanted })) {
        const found = foundFrom(path, name, packages)
        if (found !== undefined && components.has(idAt(found))) dependencies.get(idAt(path))?.add(idAt(found))
      }
  }
  for (const [module, version] of sqlite) {
    const ref = `sqlite@${version}`
    add(ref, { name: 'sqlite', version, scope: 'required', purl: `pkg:generic/${ref}` })
    dependencies.get(module)?.add(ref)
  }
  const { name, version, license } = program
  const licenses = [{ expression: license }]
  const purl = `pkg:npm/${self}`
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      timestamp: instant,
      component: { 'bom-ref': self, type: 'application', name, version, scope: 'required', purl, licenses },
    },
    components: [...components].sort().map(([, component]) => component),
    dependencies: [...dependencies].sort().map(([ref, on]) => ({ ref, dependsOn: [...on].sort() })),
  }
}

/** The place of a module that one at `path` loads by its name, as Node looks for it; undefined if it is not installed. */
function foundFrom(path: string, name: string, packages: Lock['packages']): string | undefined {
  for (let folder = path; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const place = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`
    if (packages[place] !== undefined) return place
    if (folder === '') return undefined
  }
}

/** Of `sha512-` and Base64, what CycloneDX has in hexadecimal. */
function digestOf(integrity: string) {
  const [algorithm = '', text = ''] = integrity.split('-')
  return { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(text, 'base64').toString('hex') }
}
