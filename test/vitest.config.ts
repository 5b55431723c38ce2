import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    // Minutes each; `npm run test:long` runs them.
    exclude: ['test/**/*.long.test.ts'],
    globalSetup: ['test/support/temporary-files.ts'],
    // Real processes and files: a slow machine must not turn a right answer into a failure.
    testTimeout: 120_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // They mostly wait for the processes that they start.
    maxWorkers: 3,
  },
})
