import { defineConfig, mergeConfig } from 'vitest/config'
import usual from './vitest.config.ts'

/** The rules for Prometheus, which need `promtool`. */
export default mergeConfig(
  { ...usual, test: { ...usual.test, include: [], exclude: [] } },
  defineConfig({ test: { include: ['test/**/*.promtool.test.ts'] } }),
)
