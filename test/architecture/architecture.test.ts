import { describe, expect, test } from 'vitest'
import { RULES } from './rules.ts'
import { readSources, sourceOf } from './source.ts'

const sources = readSources(new URL('../../src', import.meta.url).pathname)

describe('in src/', () => {
  test.each(Object.entries(RULES))('%s', (_, rule) => {
    expect(rule(sources)).toEqual([])
  })

  test('the sources and their imports were found', () => {
    const cli = sources.find(({ path }) => path === 'cli.ts')
    expect(cli?.imports).toContainEqual({ module: 'errors.ts', typeOnly: false })
    expect(cli?.imports).toContainEqual({ module: 'commands/init.ts', typeOnly: false })
    expect(cli?.uses).toContain('process.exit')
  })
})

/** Made-up sources, and how all rules together complain of them. */
const CASES: [files: Record<string, string>, complaints: string[]][] = [
  [{ 'engine/pass.ts': "import '../api/paging.ts'; import '../store/page.ts'; import '../clock.ts'" }, []],
  [
    { 'store/page.ts': "import type { Client } from '../api/client.ts'" },
    ['store/page.ts imports api/client.ts: store and api must never meet'],
  ],
  [
    { 'api/client.ts': "export * from '../store/open.ts'" },
    ['api/client.ts imports store/open.ts: api and store must never meet'],
  ],
  [
    { 'store/page.ts': "type Plan = import('../engine/plan.ts').Plan" },
    ['store/page.ts imports engine/plan.ts: store lies below engine and must not know it'],
  ],
  [
    { 'engine/pass.ts': "await import('../app.ts')" },
    ['engine/pass.ts imports app.ts: engine lies below app and must not know it'],
  ],
  [
    { 'clock.ts': "import { x } from './config.ts'", 'json.ts': "import { y } from './resource.ts'" },
    ['json.ts imports resource.ts: json lies below resource and must not know it'],
  ],
  [
    { 'resource.ts': "import { x } from './catalog.ts'" },
    ['resource.ts imports catalog.ts: resource lies below catalog and must not know it'],
  ],
  [{ 'cli.ts': "import('./commands/status.ts'); import './errors.ts'" }, []],
  [
    { 'cli.ts': "import { open } from './app.ts'" },
    ['cli.ts imports app.ts: the command line knows commands only'],
  ],
  [
    {
      'resources/teams.ts':
        "import '../resource.ts'; import 'drizzle-orm/sqlite-core'; import { z } from 'zod'",
    },
    [],
  ],
  [
    { 'resources/teams.ts': "import { members } from './members.ts'; import '../clock.ts'" },
    [
      'resources/teams.ts imports resources/members.ts: a resource imports resource.ts, drizzle-orm and zod only',
      'resources/teams.ts imports clock.ts: a resource imports resource.ts, drizzle-orm and zod only',
    ],
  ],
  [
    { 'simulator/world/draw.ts': "import '../../clock.ts'; import '../server.ts'; import '../../json.ts'" },
    [
      'simulator/world/draw.ts imports json.ts: the simulator is the other side and knows nothing of parley but errors.ts and clock.ts',
    ],
  ],
  [
    {
      'commands/simulate.ts': "import '../simulator/server.ts'",
      'commands/demo.ts': "import '../simulator/server.ts'",
      'commands/status.ts': "import '../simulator/server.ts'",
    },
    [
      'commands/status.ts imports simulator/server.ts: only the commands simulate and demo know the simulator',
    ],
  ],
  [
    {
      'store/open.ts': "import Database from 'better-sqlite3'",
      'store/page.ts': "import type { Database } from 'better-sqlite3'",
      'store/views.ts': "import { type Database } from 'better-sqlite3'",
      'store/runs.ts': "import Database, { type Statement } from 'better-sqlite3'",
    },
    [
      'store/views.ts imports better-sqlite3: only store/open.ts and store/database/writable-file.ts and store/lock.ts and store/requests.ts and store/checkpoint-worker.ts and store/status-worker.ts and store/snapshot-worker.ts and store/rebuild-worker.ts and store/copy-owner.ts may',
      'store/runs.ts imports better-sqlite3: only store/open.ts and store/database/writable-file.ts and store/lock.ts and store/requests.ts and store/checkpoint-worker.ts and store/status-worker.ts and store/snapshot-worker.ts and store/rebuild-worker.ts and store/copy-owner.ts may',
    ],
  ],
  [
    {
      'app.ts': "import { Command } from 'commander'",
      'commands/status.ts': "import { Option } from 'commander'",
    },
    ['app.ts imports commander: only cli.ts and commands/ may'],
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
      'app.ts uses process.env: only config.ts may',
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
      'app.ts uses node:timers/promises: only clock.ts and simulator/ may',
    ],
  ],
  [
    {
      'engine/pass.ts':
        'const now = Date.now; setTimeout(go, 1); const t = setInterval; new Date(); performance.now()',
    },
    ['Date.now', 'setTimeout', 'setInterval', 'new Date()', 'performance.now'].map(
      use => `engine/pass.ts uses ${use}: only clock.ts and simulator/ may`,
    ),
  ],
  [
    {
      'clock.ts': 'Date.now(); setTimeout(go, 1)',
      'simulator/server.ts': 'Date.now()',
      'engine/pass.ts':
        '// Date.now()\nconst text = "process.env"; server.setTimeout(1); new Date(0); clock.now()',
    },
    [],
  ],
  [
    {
      'store/open.ts': "import { closeSync, openSync as create, statSync } from 'node:fs'",
      'store/page.ts': "import * as fs from 'node:fs'; import { open } from 'node:fs/promises'",
      'store/runs.ts': "const fs = await import('node:fs')",
      'store/whole-copy.ts': "import { openSync, type Stats } from 'node:fs'",
    },
    [
      'store/open.ts takes node:fs.openSync',
      'store/page.ts takes node:fs.*',
      'store/page.ts takes node:fs/promises.open',
      'store/runs.ts takes node:fs.*',
    ].map(complaint => `${complaint}: name in test/architecture/rules.ts what it opens`),
  ],
  [
    {
      'store/status.ts': 'db.transaction(() => readAll(db))()',
      'store/page.ts': 'db.transaction(work)(); db.transaction(work).immediate(); store.transaction(work)',
    },
    [
      'store/page.ts uses a deferred transaction: only store/search-read.ts and store/status.ts and store/transaction.ts and store/crm-tables.ts and store/database/set-aside.ts may',
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
    ['api/a.ts → api/b.ts → api/c.ts → api/a.ts'],
  ],
]

test.each(CASES)('of %j all rules say %j', (files, complaints) => {
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
