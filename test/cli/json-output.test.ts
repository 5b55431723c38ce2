import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startScriptedApi } from '../support/scripted-api.ts'
import { emptyFolder, parley } from './parley.ts'

const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u

/** A file name with the characters that JSON itself leaves as they are: DEL, C1 and a change of direction. */
const NAME = 'acme\u007f\u009b31m\u202e'

/** Every command that prints JSON. Each prints the name of the database or of what it writes. */
const COMMANDS: readonly (readonly string[])[] = [
  ['backfill', '--json'],
  ['backfill', '--plan', '--json'],
  ['doctor', '--json'],
  ['status', '--json'],
  ['schema', '--json'],
  ['schema', '--datasette'],
  ['search', `${NAME} nowhere`, '--json'],
  ['snapshot', `${NAME}-copy.db`, '--json'],
  ['export', 'parquet', NAME, '--json'],
]

test('JSON on standard output contains no terminal control character, whatever names it contains', async () => {
  const api = await startScriptedApi()
  const cwd = emptyFolder()
  const env = {
    PARLEY_BASE_URL: api.url,
    PARLEY_API_KEY: 'sk_test_1',
    PARLEY_WORKSPACE_ID: 'W',
    PARLEY_DATABASE: join(cwd, `${NAME}.db`),
  }
  const unsafe: unknown[] = []
  const naming: string[] = []
  for (const args of COMMANDS) {
    const { stdout, stderr } = await parley(args, { cwd, env })
    expect(stdout, `${args.join(' ')}: ${stderr}`).not.toBe('')
    if (stdout.split('\n').some(line => UNSAFE.test(line))) unsafe.push(args)
    if (JSON.stringify(JSON.parse(stdout)).includes(NAME)) naming.push(args.join(' '))
  }
  expect(unsafe).toEqual([])
  expect(naming).toEqual(
    COMMANDS.filter(([command, option]) => !(command === 'schema' && option === '--json')).map(args =>
      args.join(' '),
    ),
  )
})
