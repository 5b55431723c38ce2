import { tmpdir } from 'node:os'
import { defineConfig, mergeConfig } from 'vitest/config'
import usual from './vitest.config.ts'

// On the disk: a machine needs devices, which the memory's file system may refuse.
process.env['TMPDIR'] ??= tmpdir()

/** What an installation brings, with the programs that use it: shells, the package manager of Debian. */
export default mergeConfig(
  { ...usual, test: { ...usual.test, include: [], exclude: [] } },
  // One file at a time: they share the release, and each keeps the processors busy.
  defineConfig({ test: { include: ['test/install/**/*.test.ts'], fileParallelism: false } }),
)
