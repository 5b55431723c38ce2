import { defineConfig, mergeConfig } from 'vitest/config'
import usual from './vitest.config.ts'

/** A clone on every supported Node, installed and used as the first page says. */
export default mergeConfig(
  { ...usual, test: { ...usual.test, include: [], exclude: [] } },
  defineConfig({ test: { include: ['test/nodes/**/*.test.ts'] } }),
)
