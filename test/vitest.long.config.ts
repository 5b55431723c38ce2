import { defineConfig, mergeConfig } from 'vitest/config'
import usual from './vitest.config.ts'

/**
 * The tests that take minutes each: the daemon over long outages, pauses, deletions and wrong clocks. Also the
 * properties, with random seeds.
 */
export default mergeConfig(
  { ...usual, test: { ...usual.test, include: [], exclude: [], setupFiles: [] } },
  defineConfig({ test: { include: ['test/**/*.long.test.ts', 'test/properties/**/*.test.ts'] } }),
)
