import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './longest-first.ts'

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    // Minutes each: `npm run test:long`. Or they read files that parley wrote, `npm run test:export`, or need separate
    // processes, `npm run test:processes`, Chromium,
    // `npm run test:page`, promtool, `npm run test:alerts`, query engines, `npm run test:engines`, other versions of Node,
    // `npm run test:nodes`, or shells, `npm run test:install`.
    exclude: [
      'test/**/*.long.test.ts',
      'test/**/*.process.test.ts',
      'test/{export,publish}/**',
      'test/page/**',
      'test/**/*.promtool.test.ts',
      'test/engines/**',
      'test/nodes/**',
      'test/install/**',
    ],
    globalSetup: ['test/support/temporary-files.ts'],
    setupFiles: ['test/support/fixed-seed.ts'],
    // The last resort against a test that hangs: waits end by themselves once nothing moves (`support/until.ts`).
    testTimeout: 1_200_000,
    hookTimeout: 1_200_000,
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    // Some files wait for processes that they start, or for an API that does not answer, and one more fills that time.
    maxWorkers: availableParallelism() + 1,
    // One import of the program for all files of a worker. No test changes what others see for longer than it runs.
    isolate: false,
    // Young objects are then collected a quarter as often.
    execArgv: ['--max-semi-space-size=64'],
  },
})
