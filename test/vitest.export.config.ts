import { defineConfig, mergeConfig } from 'vitest/config'
import usual from './vitest.config.ts'

/** The files that parley writes for others: exports and publications, read back by DuckDB and icebird. */
export default mergeConfig(
  { ...usual, test: { ...usual.test, include: [], exclude: [] } },
  defineConfig({
    test: {
      include: ['test/{export,publish}/**/*.test.ts'],
      exclude: ['test/**/*.{long,process}.test.ts'],
    },
  }),
)
