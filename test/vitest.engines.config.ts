import { tmpdir } from 'node:os'
import { defineConfig, mergeConfig } from 'vitest/config'
import usual from './vitest.config.ts'

// On the disk, which Ceph writes past the cache of the kernel.
process.env['TMPDIR'] ??= tmpdir()

/** Query engines that read published tables. Their packages are in `test/engines`. */
export default mergeConfig(
  {
    ...usual,
    test: { ...usual.test, include: [], exclude: [], globalSetup: [] },
  },
  defineConfig({
    test: {
      include: ['test/engines/*.test.ts'],
      globalSetup: ['test/support/temporary-files.ts', 'test/engines/lake.ts'],
    },
  }),
)
