import { dirname } from 'node:path/posix'
import type { Import, Source } from './source.ts'

/** Says what breaks the rule, each as a sentence that names the file; nothing when all is well. */
export type Rule = (sources: readonly Source[]) => string[]

/** From the top down; those of one line are neighbours that do not know each other. Other files are the ground. */
const LAYERS = [
  ['cli'],
  ['command-line'],
  ['commands'],
  ['daemon'],
  ['app'],
  ['doctor', 'report'],
  ['engine', 'server', 'publish', 'retention', 'hooks'],
  ['export'],
  ['health'],
  ['api', 'store'],
  ['dictionary'],
  ['catalog/feeds'],
  ['catalog/catalog'],
  ['catalog/declarations'],
  ['resources'],
  ['declare'],
]

/** The only files that may import a package. Its types may be named anywhere. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  '@aws-sdk/client-s3': ['publish/storage/s3-client.ts'],
  avsc: ['publish/iceberg/avro-file.ts'],
  'better-sqlite3': ['store/database/sqlite.ts'],
  bottleneck: ['api/governor/turns.ts'],
  commander: ['command-line/', 'commands/'],
  croner: ['config/calendar.ts'],
  fastify: ['server/server.ts'],
  hyparquet: ['publish/verify/parquet-rows.ts'],
  'hyparquet-writer': ['export/parquet-file.ts'],
  'p-queue': ['engine/scheduler/steps.ts', 'publish/storage/s3-files.ts'],
  pino: ['base/log.ts'],
  'pino-pretty': ['base/log.ts'],
  'prom-client': ['server/metrics.ts'],
  'smol-toml': ['config/setting-layers.ts'],
  'email-providers': ['store/reporting/sides.ts'],
  undici: ['base/http-pool.ts'],
}

const TIME = ['base/clock.ts', 'simulator/']
/** The only files that may use a part of the platform. A path that ends with a slash stands for the whole folder. */
const PLATFORM: Readonly<Record<string, readonly string[]>> = {
  // The client of AWS reads a variable that is only for its notices.
  'process.env': ['cli.ts', 'publish/storage/s3-client.ts'],
  'process.exit': ['cli.ts'],
  'process.exitCode': ['cli.ts'],
  'process.abort': [],
  'process.hrtime': TIME,
  'Date.now': TIME,
  'new Date()': TIME,
  'performance.now': TIME,
  'AbortSignal.timeout': TIME,
  setTimeout: TIME,
  setInterval: TIME,
  'node:timers': TIME,
  'node:timers/promises': TIME,
  'node:process': [],
  // Chance, and turns of the event loop. Like time, `test/simulation/machine.ts` replaces these, so that a life can be repeated.
  'Math.random': ['app/', 'hooks/watch.ts', 'publish/storage/open.ts', 'commands/simulate.ts'],
  randomUUID: [
    'publish/',
    'store/changes/noted-changes.ts',
    'store/store.ts',
    'base/json.ts',
    'store/disk/new-files.ts',
  ],
  randomBytes: ['store/copies/copy-files.ts'],
  setImmediate: ['store/database/transaction.ts', 'export/partitions.ts', 'server/metrics.ts', 'simulator/'],
  // Its tables take up to 6 MiB of memory as soon as one object is made.
  Intl: ['base/time-zone.ts', 'terminal/text-width.ts'],
  // SQLite refuses its first write at once when another program writes, however long it may wait.
  'a deferred transaction': [
    // They only read.
    'store/search/run-search.ts',
    'store/status/status.ts',
    // They are savepoints in an immediate one.
    'store/database/transaction.ts',
    'store/database/existing-tables.ts',
    'store/crm/typed-tables.ts',
  ],
  // SQLite reads the value to plan the query, so it compiles the statement again at each use. LIMIT +? hides the value.
  'a bound LIMIT': [
    // They are compiled for one use.
    'store/search/',
    'store/status/overview.ts',
  ],
  // It keeps what it has read until the next write.
  'a write to sync_segments': [
    'store/sync/segments.ts',
    // Nothing has read segments while a file is opened.
    'store/migrations/lower-case-ids.ts',
  ],
}

/**
 * The only files that may open files, by the functions of node:fs that leave a descriptor or close one. None of them
 * opens a database, its -wal, -shm or -lock: closing any descriptor of these drops the locks of the whole process.
 * test/store/descriptors.process.test.ts watches the running program for the same.
 */
const FILE_FUNCTIONS: Readonly<Record<string, readonly string[]>> = {
  'node:fs.openSync': [
    // The mark of a Parquet file.
    'export/fingerprint.ts',
    // Every file that parley creates, and what is synced to the disk.
    'store/disk/new-files.ts',
  ],
  // Files of a published folder.
  'node:fs.open': ['publish/storage/target-reader.ts'],
  // Files that are downloaded, by their descriptor.
  'node:fs.appendFile': ['publish/storage/s3-files.ts'],
  'node:fs.readFileSync': [
    'cli.ts',
    'config/setting-layers.ts',
    'commands/doctor.ts',
    // The scripts for shells.
    'commands/completion.ts',
    // The report whose place a new one takes; its name ends in .html.
    'commands/report.ts',
    // The questions.
    'dictionary/questions.ts',
    // The manifest.
    'export/target.ts',
    // Objects of a published folder.
    'publish/storage/folder.ts',
    // /proc/self/mountinfo.
    'store/disk/location.ts',
    // /proc/locks, and the processes that it names.
    'store/disk/lock-holders.ts',
    // The migrations.
    'store/migrations/journal.ts',
    'store/migrations/foreign-objects.ts',
  ],
  'node:fs.writeFileSync': [
    // /proc/self/autogroup.
    'base/lower-priority.ts',
    // The manual and the scripts for shells, during the build.
    'command-line/write-reference.ts',
    'store/disk/new-files.ts',
  ],
  'node:fs/promises.readFile': [
    // The style and the module of the page.
    'server/routes.ts',
    // Files of a published folder.
    'publish/storage/target-reader.ts',
  ],
  'node:fs/promises.open': [
    // The file whose place a snapshot takes, once it is known to be none of the warehouse, and its folder.
    'store/snapshot/snapshot.ts',
  ],
}

/** Functions of `node:fs` and `node:fs/promises` that open a file. */
const OPENS =
  /^(node:)?fs(\/promises)?\.(\*|(open|readFile|writeFile|appendFile|copyFile|cp|truncate|openAsBlob|createReadStream|createWriteStream)(Sync)?)$/

const EMPTY_NAMES = ['utils', 'util', 'helpers', 'helper', 'common', 'manager', 'index', 'misc', 'shared']

const within = (path: string, places: readonly string[]): boolean =>
  places.some(place => (place.endsWith('/') ? path.startsWith(place) : path === place))

const isOurs = ({ module }: Import): boolean => module.endsWith('.ts')

/** What the layers are made of: a file that they name, or else its first folder. */
const unitOf = (path: string): string => {
  const file = path.replace(/\.ts$/, '')
  return LAYERS.flat().includes(file) ? file : file.replace(/\/.*$/, '')
}

const rankOf = (unit: string): number => {
  const rank = LAYERS.findIndex(layer => layer.includes(unit))
  return rank < 0 ? LAYERS.length : rank
}

const perImport =
  (judge: (source: Source, found: Import) => string | undefined): Rule =>
  sources =>
    sources.flatMap(source =>
      source.imports.flatMap(found => {
        const wrong = judge(source, found)
        return wrong === undefined ? [] : [`${source.path} imports ${found.module}: ${wrong}`]
      }),
    )

const layers = perImport((source, found) => {
  const [from, to] = [unitOf(source.path), unitOf(found.module)]
  if (!isOurs(found) || from === to || from === 'simulator' || to === 'simulator') return undefined
  if (rankOf(from) === LAYERS.length && rankOf(to) === LAYERS.length) return undefined
  if (rankOf(from) > rankOf(to)) return `${from} lies below ${to} and must not know it`
  return rankOf(from) === rankOf(to) ? `${from} and ${to} must never meet` : undefined
})

const commandLine = perImport(({ path }, found) => {
  const rank = rankOf(unitOf(found.module))
  const allowed = unitOf(found.module) === 'command-line' || rank === LAYERS.length
  return path === 'cli.ts' && isOurs(found) && !allowed
    ? 'the process knows the command line only'
    : undefined
})

const resources = perImport(({ path }, { module }) =>
  path.startsWith('resources/') && module !== 'declare/resource.ts' && module !== 'declare/table.ts'
    ? 'a resource imports declare/resource.ts and declare/table.ts only'
    : undefined,
)

const simulatorAlone = perImport(({ path }, found) =>
  path.startsWith('simulator/') &&
  isOurs(found) &&
  !within(found.module, ['simulator/', 'base/errors.ts', 'base/clock.ts'])
    ? 'the simulator is the other side and knows nothing of parley but errors.ts and clock.ts'
    : undefined,
)

/** Without the files of this folder, no statement can be prepared. */
const DATABASE = 'store/database/'
const WITHOUT_STATEMENTS = ['store/database/sqlite-errors.ts']

const engineWithoutSql = perImport(({ path }, { module }) =>
  path.startsWith('engine/') && module.startsWith(DATABASE) && !WITHOUT_STATEMENTS.includes(module)
    ? 'the engine decides and the store executes, so SQL stands in store/'
    : undefined,
)

/** What the engine needs to know of a resource stands in its declaration. */
const engineWithoutResources: Rule = sources =>
  sources
    .filter(({ path }) => path.startsWith('engine/'))
    .flatMap(({ path, resources }) =>
      resources.map(name => `${path} names ${name}: declare what is special about it in resources/`),
    )

const KNOW_THE_SIMULATOR = [
  'simulator/',
  'commands/simulate.ts',
  'commands/demo/demo.ts',
  'commands/demo/daily-changes.ts',
]

const simulatorUnknown = perImport(({ path }, { module }) =>
  module.startsWith('simulator/') && !within(path, KNOW_THE_SIMULATOR)
    ? 'only the commands simulate and demo know the simulator'
    : undefined,
)

const owners = perImport((source, found) => {
  const { module } = found
  if (isOurs(found) || found.typeOnly || /^node:|^\./.test(module)) return undefined
  const places = Object.hasOwn(OWNERS, module) ? OWNERS[module] : undefined
  if (places === undefined) return 'this package has no owner yet; name one in test/architecture/rules.ts'
  return within(source.path, places) ? undefined : `only ${places.join(' and ')} may`
})

const platform: Rule = sources =>
  sources.flatMap(({ path, uses, imports }) =>
    [...new Set([...uses, ...imports.map(({ module }) => module)])].flatMap(use => {
      const places = Object.hasOwn(PLATFORM, use) ? PLATFORM[use] : undefined
      if (places === undefined || within(path, places)) return []
      return [
        `${path} uses ${use}: ${places.length === 0 ? 'nothing may' : `only ${places.join(' and ')} may`}`,
      ]
    }),
  )

const fileFunctions: Rule = sources =>
  sources
    .filter(({ path }) => !path.startsWith('simulator/'))
    .flatMap(({ path, uses }) =>
      uses
        .filter(use => OPENS.test(use) && !(FILE_FUNCTIONS[use] ?? []).includes(path))
        .map(use => `${path} takes ${use}: name in test/architecture/rules.ts what it opens`),
    )

const names: Rule = sources =>
  sources.flatMap(({ path }) => {
    const empty = path
      .replace(/\.ts$/, '')
      .split('/')
      .find(part => EMPTY_NAMES.includes(part))
    return empty === undefined ? [] : [`${path}: "${empty}" says nothing about what is in it`]
  })

/** Types count too: what names each other's types can only be read together. */
function cyclesOf(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>()
  const cycles: string[] = []
  const walk = (from: string, trail: readonly string[]): void => {
    const start = trail.indexOf(from)
    if (start >= 0) cycles.push([...trail.slice(start), from].join(' → '))
    if (start >= 0 || done.has(from)) return
    for (const next of graph.get(from) ?? []) walk(next, [...trail, from])
    done.add(from)
  }
  for (const from of graph.keys()) walk(from, [])
  return cycles
}

const noFileCycles: Rule = sources =>
  cyclesOf(
    new Map(sources.map(({ path, imports }) => [path, imports.filter(isOurs).map(({ module }) => module)])),
  )

const noFolderCycles: Rule = sources => {
  const graph = new Map<string, string[]>()
  for (const { path, imports } of sources) {
    const from = dirname(path)
    const others = imports.filter(isOurs).map(({ module }) => dirname(module))
    graph.set(from, [...(graph.get(from) ?? []), ...others.filter(to => to !== from)])
  }
  return cyclesOf(graph)
}

/** A reader who searches for a type finds one declaration. The parameters of generic types do not count. */
const oneDeclaration: Rule = sources => {
  const declarations = new Map<string, string[]>()
  for (const { path, types } of sources) {
    for (const type of types) declarations.set(type, [...(declarations.get(type) ?? []), path])
  }
  return [...declarations]
    .filter(([, paths]) => paths.length > 1)
    .map(([type, paths]) => `${paths.join(' and ')} declare ${type}: rename all but one, or import it`)
}

/** Each rule by the sentence that it holds. A rule about a file that does not exist holds. */
export const RULES: Readonly<Record<string, Rule>> = {
  'cli → command-line → commands → daemon → app → doctor → engine, server, export → health → api, store → dictionary → catalog → resources → declare: imports go down only, and neighbours never meet':
    layers,
  'cli.ts imports the command line and the ground only': commandLine,
  'resources import declare/resource.ts, declare/table.ts and their schema libraries only, never each other':
    resources,
  'the simulator knows nothing of parley': simulatorAlone,
  'nothing but the commands simulate and demo knows the simulator': simulatorUnknown,
  'no SQL stands in the engine': engineWithoutSql,
  'the engine names no resource': engineWithoutResources,
  'every package has one owner': owners,
  'the environment, the end of the process, the clock, timers, Intl, deferred transactions, bound limits and segments have owners':
    platform,
  'only SQLite opens the database: every file that opens files is named with what it opens': fileFunctions,
  'a name says what is in the file': names,
  'no files import each other in a circle, types included': noFileCycles,
  'no folders import each other in a circle, types and what is loaded late included': noFolderCycles,
  'every type name is declared once': oneDeclaration,
}
