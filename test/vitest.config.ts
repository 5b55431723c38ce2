import { defineConfig } from 'vitest/config'
import { LongestFirst } from './longest-first.ts'

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    // Minutes each; `npm run test:long` runs them.
    exclude: ['test/**/*.long.test.ts'],
    globalSetup: ['test/support/temporary-files.ts'],
    // The last resort against a test that hangs: waits end by themselves once nothing moves (`support/until.ts`).
    testTimeout: 1_200_000,
    hookTimeout: 1_200_000,
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    // They mostly wait for the processes that they start.
    maxWorkers: 3,
  },
})
