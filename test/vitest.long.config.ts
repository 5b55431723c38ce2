import { defineConfig, mergeConfig } from 'vitest/config'
import usual from './vitest.config.ts'

/** The tests that take minutes each: the daemon over long outages, pauses, withdrawals and wrong clocks. */
export default mergeConfig(
  { ...usual, test: { ...usual.test, include: [], exclude: [] } },
  defineConfig({ test: { include: ['test/**/*.long.test.ts'] } }),
)
