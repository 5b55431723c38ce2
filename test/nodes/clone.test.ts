import { execFileSync } from 'node:child_process'
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyFolder, installNode, ROOT } from './node.ts'

const WITHOUT_COMPILER = { CC: 'false', CXX: 'false' }

/** A clone is installed and built as the first page says. The Node that runs these tests runs the others of its kind. */
test.each([
  ['22', '11'],
  ['24', '12'],
  ['26', '12'],
])('with Node %s and npm %s a clone is installed and its demo runs without a compiler', async (node, npm) => {
  const start = installNode(node, npm)
  const cwd = emptyFolder('clone')
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' })
  for (const file of files.split('\0').filter(name => name !== ''))
    if (existsSync(join(ROOT, file))) cpSync(join(ROOT, file), join(cwd, file))
  const { said: version } = await start('node', ['--version'], { cwd }).ended
  expect(version).toMatch(new RegExp(`^v${node}\\.`))
  for (const args of [['ci'], ['run', 'demo', '--', '--messages', '300']]) {
    const { status, said } = await start('npm', args, { cwd, env: WITHOUT_COMPILER }).ended
    expect(status, said).toBe(0)
    expect(said).not.toContain('Compiling')
  }
})
