import { defineConfig, mergeConfig } from 'vitest/config'
import usual from './vitest.config.ts'

/**
 * What only the built program as a separate process shows: kills, locks, users, descriptors, full disks, whole trials.
 * Also daemons within a test's process, and publications to a bucket.
 */
export default mergeConfig(
  { ...usual, test: { ...usual.test, include: [], exclude: [] } },
  defineConfig({ test: { include: ['test/**/*.process.test.ts'] } }),
)
