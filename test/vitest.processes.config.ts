import { availableParallelism } from 'node:os'
import { defineConfig, mergeConfig } from 'vitest/config'
import usual from './vitest.config.ts'

/**
 * What only the built program as a separate process shows: kills, locks, users, descriptors, full disks, whole trials.
 * Also daemons within a test's process, and publications to a bucket.
 */
export default mergeConfig(
  { ...usual, test: { ...usual.test, include: [], exclude: [] } },
  // They mostly wait for the processes that they start: fewer files at a time leave two cores idle.
  defineConfig({ test: { include: ['test/**/*.process.test.ts'], maxWorkers: 2 * availableParallelism() } }),
)
