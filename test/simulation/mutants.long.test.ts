import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { live } from './life.ts'
import { MUTANTS, type Mutant, mutatedFile } from './mutants.ts'

const ROOT = resolve(import.meta.dirname, '../..')

/** The life of a mutant with a copy of the program that has its fault. @returns what was found */
async function foundIn(mutant: Mutant): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-mutant-'))
  try {
    for (const name of ['src', 'test', 'drizzle', 'package.json', 'tsconfig.json'])
      cpSync(join(ROOT, name), join(folder, name), {
        recursive: true,
        filter: path => !path.includes('node_modules'),
      })
    for (const name of ['node_modules', 'src/store/database/node-20/node_modules'])
      if (existsSync(join(ROOT, name))) symlinkSync(join(ROOT, name), join(folder, name))
    writeFileSync(join(folder, 'src', mutant.file), mutatedFile(mutant))
    writeFileSync(join(folder, 'life.json'), JSON.stringify({ life: mutant.life }))
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', 'test/simulation/simulate.ts', '--until-failed', 'life.json'],
      { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const [output] = await Promise.all([text(child.stdout), once(child, 'close')])
    const lines = output.trim().split('\n')
    const failed = lines.findIndex(line => line.startsWith('FAILED'))
    return failed < 0 ? [] : lines.slice(failed + 1, -1)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('its life finds a program that', () => {
  test.each(MUTANTS.map(mutant => [mutant.does, mutant] as const))('%s', async (_, mutant) => {
    expect((await live(mutant.life)).findings).toEqual([])
    expect(await foundIn(mutant)).not.toEqual([])
  })
})
