import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { column, startDaemon } from '../daemon/cli-daemon.ts'
import { listenUntilTestEnds } from '../support/http-server.ts'
import { parley } from './parley.ts'
import { backfilled } from './workspace.ts'

const KEY = 'sk_live_4f3c2b1awxyz'

/** Text of people, and the key: complete, and shortened as some services do. */
const QUOTED = ['Trillian', 'trillian@example.com', 'layoffs', KEY, 'sk_live', 'wxyz']

const SENTENCE = `Meeting “${QUOTED.join(' ')}” of ${QUOTED.join(' ')} is not found for key sk_live…wxyz`

/** Quotes these texts in every answer. */
async function startQuotingApi(): Promise<{ url: string; answers: { status(path: string): number } }> {
  const answers = { status: (path: string) => [400, 403, 404, 409, 422][path.length % 5] ?? 400 }
  const server = createServer(({ url = '/' }, response) => {
    const status = answers.status(url.replace(/\?.*/, ''))
    const body = url.startsWith('/v2')
      ? { error: { code: 'layoffs', message: SENTENCE, request_id: SENTENCE } }
      : { statusCode: status, message: SENTENCE, error: SENTENCE }
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body))
  })
  return { url: await listenUntilTestEnds(server), answers }
}

test('no command prints, logs, stores or serves the text of API errors', async context => {
  const { cwd, file, env } = await backfilled(context)
  const { url, answers } = await startQuotingApi()
  const quoting = { ...env, PARLEY_BASE_URL: url, PARLEY_API_KEY: KEY, PARLEY_DATABASE: file }
  const said: string[] = []
  const run = async (...args: string[]) => {
    const { stdout, stderr } = await parley(args, { cwd, env: quoting })
    said.push(stdout + stderr)
  }
  await run('backfill', '--json', '--log-level', 'trace')
  await run('doctor')
  await run('status', '--json')

  const daemon = startDaemon(context, { cwd, env: quoting }, { PARLEY_LOG_LEVEL: 'trace' })
  await daemon.says(({ msg }) => msg === 'Failed to read resource')
  for (const path of ['/status', '/metrics', '/readyz']) said.push((await daemon.ask(path)).body)
  daemon.signal('SIGTERM')
  said.push((await daemon.ended).stderr)

  answers.status = () => 401
  await run('backfill')
  await run('doctor')
  said.push(
    JSON.stringify([
      column(file, 'SELECT error FROM sync_runs'),
      column(file, 'SELECT reason FROM sync_status'),
      column(file, 'SELECT value FROM sync_meta'),
    ]),
  )
  expect(QUOTED.filter(word => said.join('\n').includes(word))).toEqual([])
  // Every page but the metrics and the probe shows the known words.
  expect(said.map(text => text.includes('is not found for key …'))).toEqual(
    said.map((_, at) => at !== 4 && at !== 5),
  )
})
