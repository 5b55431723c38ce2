import { defineConfig, mergeConfig } from 'vitest/config'
import usual from './vitest.config.ts'

/** The tests of the status page in Chromium. */
export default mergeConfig(
  { ...usual, test: { ...usual.test, include: [], exclude: [] } },
  defineConfig({ test: { include: ['test/page/**/*.test.ts'], maxWorkers: 2 } }),
)
