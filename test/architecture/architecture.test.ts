import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import { RULES } from './rules.ts'
import { readSources, sourceOf } from './source.ts'

const sources = readSources(new URL('../../src', import.meta.url).pathname)

describe('the source in src/', () => {
  test.each(Object.entries(RULES))('%s', (_, rule) => {
    expect(rule(sources)).toEqual([])
  })

  test('the sources and their imports are found', () => {
    const cli = sources.find(({ path }) => path === 'cli.ts')
    expect(cli?.imports).toContainEqual({ module: 'base/errors.ts', typeOnly: false })
    expect(cli?.imports).toContainEqual({ module: 'command-line/command-line.ts', typeOnly: false })
    expect(cli?.uses).toContain('process.exit')
  })
})

test('a user installs no package that the program does not import, but one that pins a version', () => {
  const { dependencies, optionalDependencies } = createRequire(import.meta.url)('../../package.json')
  const imported = new Set(sources.flatMap(({ imports }) => imports.map(({ module }) => module)))
  const installed = Object.keys({ ...dependencies, ...optionalDependencies })
  expect(installed.filter(name => !imported.has(name))).toEqual(['light-my-request'])
})

/** Made-up sources, and how all rules together complain of them. */
const CASES: [files: Record<string, string>, complaints: string[]][] = [
  [
    { 'engine/pass.ts': "import '../api/paging.ts'; import '../store/page.ts'; import '../base/clock.ts'" },
    [],
  ],
  [
    { 'store/page.ts': "import type { Client } from '../api/client.ts'" },
    ['store/page.ts imports api/client.ts: store and api must never meet'],
  ],
  [
    { 'api/client.ts': "export * from '../store/file/open.ts'" },
    ['api/client.ts imports store/file/open.ts: api and store must never meet'],
  ],
  [
    { 'store/page.ts': "type Plan = import('../engine/estimate/plan.ts').Plan" },
    ['store/page.ts imports engine/estimate/plan.ts: store lies below engine and must not know it'],
  ],
  [
    { 'engine/pass.ts': "await import('../app.ts')" },
    ['engine/pass.ts imports app.ts: engine lies below app and must not know it'],
  ],
  [
    {
      'base/clock.ts': "import { x } from '../config/config.ts'",
      'base/json.ts': "import { y } from '../declare/resource.ts'",
    },
    ['base/json.ts imports declare/resource.ts: base lies below declare and must not know it'],
  ],
  [
    { 'declare/resource.ts': "import { x } from '../catalog/catalog.ts'" },
    [
      'declare/resource.ts imports catalog/catalog.ts: declare lies below catalog/catalog and must not know it',
    ],
  ],
  [{ 'cli.ts': "import('./command-line/commands.ts'); import './base/errors.ts'" }, []],
  [
    { 'cli.ts': "import { open } from './app.ts'; import './commands/daemon.ts'" },
    [
      'cli.ts imports app.ts: the process knows the command line only',
      'cli.ts imports commands/daemon.ts: the process knows the command line only',
    ],
  ],
  [
    {
      'resources/teams.ts': "import '../declare/resource.ts'",
    },
    [],
  ],
  [
    { 'resources/teams.ts': "import { members } from './members.ts'; import '../base/clock.ts'" },
    [
      'resources/teams.ts imports resources/members.ts: a resource imports declare/resource.ts and declare/table.ts only',
      'resources/teams.ts imports base/clock.ts: a resource imports declare/resource.ts and declare/table.ts only',
    ],
  ],
  [
    {
      'simulator/world/draw.ts':
        "import '../../base/clock.ts'; import '../base/ids.ts'; import '../../base/json.ts'",
    },
    [
      'simulator/world/draw.ts imports base/json.ts: the simulator is the other side and knows nothing of parley but errors.ts and clock.ts',
    ],
  ],
  [
    {
      'commands/simulate.ts': "import '../simulator/server.ts'",
      'commands/demo/demo.ts': "import '../../simulator/server.ts'",
      'commands/status/status.ts': "import '../../simulator/server.ts'",
    },
    [
      'commands/status/status.ts imports simulator/server.ts: only the commands simulate and demo know the simulator',
    ],
  ],
  [
    {
      'store/database/sqlite.ts': "import Database from 'better-sqlite3'",
      'store/page.ts': "import type { Database } from 'better-sqlite3'",
      'store/views/views.ts': "import { type Database } from 'better-sqlite3'",
      'store/sync/runs.ts': "import Database, { type Statement } from 'better-sqlite3'",
    },
    [
      'store/views/views.ts imports better-sqlite3: only store/database/sqlite.ts may',
      'store/sync/runs.ts imports better-sqlite3: only store/database/sqlite.ts may',
    ],
  ],
  [
    {
      'engine/run/session.ts': "import { databaseError } from '../../store/database/sqlite-errors.ts'",
      'engine/modes/items/items.ts': "import { quote } from '../../../store/database/sql.ts'",
      'engine/feeds.ts': "import type { Prepare } from '../store/database/sqlite-types.ts'",
    },
    [
      'engine/modes/items/items.ts imports store/database/sql.ts: the engine decides and the store executes, so SQL stands in store/',
      'engine/feeds.ts imports store/database/sqlite-types.ts: the engine decides and the store executes, so SQL stands in store/',
    ],
  ],
  [
    {
      'app.ts': "import { Command } from 'commander'",
      'commands/status/status.ts': "import { Option } from 'commander'",
    },
    ['app.ts imports commander: only command-line/ and commands/ may'],
  ],
  [
    { 'api/client.ts': "import got from 'got'; import x from '@scope/name/deep'; import 'node:http'" },
    [
      'api/client.ts imports got: this package has no owner yet; name one in test/architecture/rules.ts',
      'api/client.ts imports @scope/name: this package has no owner yet; name one in test/architecture/rules.ts',
    ],
  ],
  [
    { 'app.ts': "const a = process.env; const b = process['env']; process.exitCode = 1; process.exit(1)" },
    [
      'app.ts uses process.env: only cli.ts and publish/storage/s3-client.ts may',
      'app.ts uses process.exitCode: only cli.ts may',
      'app.ts uses process.exit: only cli.ts may',
    ],
  ],
  [
    {
      'app.ts':
        "import { env } from 'node:process'; import { setTimeout as sleep } from 'node:timers/promises'",
    },
    [
      'app.ts uses node:process: nothing may',
      'app.ts uses node:timers/promises: only base/clock.ts and simulator/ may',
    ],
  ],
  [
    {
      'engine/pass.ts':
        'const now = Date.now; setTimeout(go, 1); const t = setInterval; new Date(); performance.now()',
    },
    ['Date.now', 'setTimeout', 'setInterval', 'new Date()', 'performance.now'].map(
      use => `engine/pass.ts uses ${use}: only base/clock.ts and simulator/ may`,
    ),
  ],
  [
    {
      'base/clock.ts': 'Date.now(); setTimeout(go, 1)',
      'simulator/server.ts': 'Date.now()',
      'engine/pass.ts':
        '// Date.now()\nconst text = "process.env"; server.setTimeout(1); new Date(0); clock.now()',
    },
    [],
  ],
  [
    {
      'base/size-text.ts': "const NUMBERS = new Intl.NumberFormat('en-US')",
      'terminal/text-width.ts': "new Intl.Segmenter('en')",
    },
    ['base/size-text.ts uses Intl: only base/time-zone.ts and terminal/text-width.ts may'],
  ],
  [
    {
      'store/file/open.ts': "import { closeSync, openSync as create, statSync } from 'node:fs'",
      'store/page.ts': "import * as fs from 'node:fs'; import { open } from 'node:fs/promises'",
      'store/sync/runs.ts': "const fs = await import('node:fs')",
      'store/disk/new-files.ts': "import { openSync, type Stats } from 'node:fs'",
    },
    [
      'store/file/open.ts takes node:fs.openSync',
      'store/page.ts takes node:fs.*',
      'store/page.ts takes node:fs/promises.open',
      'store/sync/runs.ts takes node:fs.*',
    ].map(complaint => `${complaint}: name in test/architecture/rules.ts what it opens`),
  ],
  [
    {
      'store/status/status.ts': 'db.transaction(() => readAll(db))()',
      'store/page.ts': 'db.transaction(work)(); db.transaction(work).immediate(); store.transaction(work)',
    },
    [
      'store/page.ts uses a deferred transaction: only store/search/run-search.ts and store/status/status.ts and store/database/transaction.ts and store/database/existing-tables.ts and store/crm/typed-tables.ts may',
    ],
  ],
  [
    {
      'store/due.ts':
        "prepare('SELECT 1 LIMIT +?'); prepare(`SELECT 1 LIMIT +@limit`); prepare('SELECT 1 LIMIT 1')",
      'store/page.ts': 'prepare(`SELECT 1 LIMIT @limit`)',
    },
    ['store/page.ts uses a bound LIMIT: only store/search/ and store/status/overview.ts may'],
  ],
  [
    { 'store/page.ts': 'db.exec(`UPDATE sync_segments SET pages = 1`); // DELETE FROM sync_segments' },
    [
      'store/page.ts uses a write to sync_segments: only store/sync/segments.ts and store/migrations/lower-case-ids.ts may',
    ],
  ],
  [
    { 'store/utils.ts': '', 'common/sql.ts': '', 'api/index.ts': '', 'store/search-index.ts': '' },
    [
      'store/utils.ts: "utils" says nothing about what is in it',
      'common/sql.ts: "common" says nothing about what is in it',
      'api/index.ts: "index" says nothing about what is in it',
    ],
  ],
  [
    {
      'api/a.ts': "import './b.ts'",
      'api/b.ts': "import { c } from './c.ts'",
      'api/c.ts': "import './a.ts'",
      'api/d.ts': "import './a.ts'; import './b.ts'; import { e } from './e.ts'",
      'api/e.ts': "import type { D } from './d.ts'",
    },
    ['api/a.ts → api/b.ts → api/c.ts → api/a.ts', 'api/d.ts → api/e.ts → api/d.ts'],
  ],
  [
    {
      'api/client.ts': "import type { Rate } from './governor/rate.ts'",
      'api/governor/rate.ts': "import './pace.ts'",
      'api/governor/pace.ts': "import '../paging/page.ts'",
      'api/paging/page.ts': "await import('../retry.ts')",
      'api/retry.ts': "import './governor/turns.ts'",
    },
    ['api → api/governor → api/paging → api'],
  ],
  [
    {
      'engine/modes/items/items.ts':
        "const feed = 'meetings.detail'; const other = `teams`; const text = 'meetings'",
      'engine/feeds.ts': "const text = 'the meetings of a day'",
      'store/search/run-search.ts': "const table = 'messages'",
    },
    [
      'engine/modes/items/items.ts names meetings.detail: declare what is special about it in resources/',
      'engine/modes/items/items.ts names teams: declare what is special about it in resources/',
      'engine/modes/items/items.ts names meetings: declare what is special about it in resources/',
    ],
  ],
  [
    {
      'api/paging.ts': 'export interface Page {}; type Read<Row> = (row: Row) => Page',
      'server/page.ts': 'function draw() { type Page = string }; class Row {}',
      'server/routes.ts': "import type { Page } from './page.ts'; export type { Page }",
      'store/rows.ts': 'enum State {}; interface State {}; interface Row {}',
    },
    [
      'api/paging.ts and server/page.ts declare Page: rename all but one, or import it',
      'server/page.ts and store/rows.ts declare Row: rename all but one, or import it',
      'store/rows.ts and store/rows.ts declare State: rename all but one, or import it',
    ],
  ],
]

test.each(CASES)('the complaints about %j are %j', (files, complaints) => {
  const made = Object.entries(files).map(([path, text]) => sourceOf(path, text))
  expect(Object.values(RULES).flatMap(rule => rule(made))).toEqual(complaints)
})

test('every rule is broken by one of the made-up cases', () => {
  const made = CASES.map(([files]) => Object.entries(files).map(([path, text]) => sourceOf(path, text)))
  const neverBroken = Object.entries(RULES).filter(([, rule]) =>
    made.every(files => rule(files).length === 0),
  )
  expect(neverBroken.map(([sentence]) => sentence)).toEqual([])
})
