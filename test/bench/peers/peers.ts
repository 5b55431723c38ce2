import { execFile } from 'node:child_process'
import { createReadStream, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { DuckDBInstance } from '@duckdb/node-api'
import { openSqlite } from '../../../src/store/database/sqlite.ts'
import { runMeasured, startMeasured, type Usage } from '../measured-process.ts'
import type { Workspace } from '../workspace.ts'
import { airbyteCatalog, airbyteConfig } from './airbyte-manifest.ts'

/** What people would use in place of parley, each as its documentation shows it, with the settings that it has by default. */

export const LISTS = ['activities', 'messages', 'members', 'collections'] as const
export type List = (typeof LISTS)[number]

/** By list and key: a value that edits change, or '' where none does. */
export type ListedRows = ReadonlyMap<List, ReadonlyMap<string, string>>

/** The column that an edit changes, by list. */
export const EDITED: Readonly<Record<List, string | undefined>> = {
  activities: undefined,
  messages: 'subject',
  members: 'name',
  collections: 'name',
}

export interface Peer {
  name: string
  /** Loads the four lists into the folder, or what is new since the last call. */
  load(workspace: Workspace, folder: string): Promise<Usage>
  /** The rows that a user of the folder finds. */
  rows(folder: string): Promise<ListedRows>
}

const run = promisify(execFile)

const HERE = new URL('.', import.meta.url).pathname
const PYTHON = new URL('../../../node_modules/.cache/peers/bin/', import.meta.url).pathname

/** @param program the built command line program */
export function peers(program: string): readonly Peer[] {
  return [parley(program), dlt, airbyte]
}

/** Installs dlt and Airbyte's CDK in the versions of requirements.txt, unless they are there. */
export async function installPeers(): Promise<void> {
  const wanted = readFileSync(join(HERE, 'requirements.txt'), 'utf8')
  const mark = join(PYTHON, 'requirements.txt')
  if (existsSync(mark) && readFileSync(mark, 'utf8') === wanted) return
  process.stderr.write('installing dlt and the CDK of Airbyte, which takes a minute\n')
  await run('python3', ['-m', 'venv', join(PYTHON, '..')])
  const file = join(HERE, 'requirements.txt')
  await run(join(PYTHON, 'pip'), ['install', '--quiet', '--no-deps', '--requirement', file])
  writeFileSync(mark, wanted)
}

const parley = (program: string): Peer => ({
  name: 'parley',
  load({ url, apiKey, workspaceId }, folder) {
    const database = join(folder, 'parley.db')
    const args = ['backfill', '--only', LISTS.join(','), '--database', database, '--log-level', 'error']
    const { child, ended } = startMeasured([program, ...args], {
      PATH: process.env['PATH'],
      PARLEY_BASE_URL: url,
      PARLEY_API_KEY: apiKey,
      PARLEY_WORKSPACE_ID: workspaceId,
    })
    child.stdout?.resume()
    return ended
  },
  async rows(folder) {
    const db = openSqlite(join(folder, 'parley.db'), { readonly: true })
    try {
      return await rowsBy(list => {
        const table = list === 'messages' ? 'live_message_copies' : `live_${list}`
        const rows = db.prepare(`SELECT id, ${EDITED[list] ?? "''"} AS value FROM ${table}`).all() as Row[]
        return new Map(rows.map(({ id, value }) => [id, value]))
      })
    } finally {
      db.close()
    }
  },
})

const dlt: Peer = {
  name: 'dlt',
  load({ url, apiKey, workspaceId }, folder) {
    const env = { URL: url, API_KEY: apiKey, WORKSPACE_ID: workspaceId }
    const log = openSync(join(folder, 'dlt.log'), 'a')
    const settings = { RUNTIME__DLTHUB_TELEMETRY: 'false', HOME: folder }
    return python([join(HERE, 'dlt_pipeline.py'), folder], { env: { ...env, ...settings }, output: log, log })
  },
  async rows(folder) {
    const instance = await DuckDBInstance.create(join(folder, 'peer.duckdb'), { access_mode: 'READ_ONLY' })
    try {
      const db = await instance.connect()
      return await rowsBy(async list => {
        const sql = `SELECT id, ${EDITED[list] ?? "''"} AS value FROM lists.${list}`
        const rows = (await db.runAndReadAll(sql)).getRowObjects() as unknown as Row[]
        return new Map(rows.map(({ id, value }) => [id, value]))
      })
    } finally {
      instance.closeSync()
    }
  },
}

/** Its records go to a file, one for each run. What reads them keeps the last of each key, as its destinations do. */
const airbyte: Peer = {
  name: "Airbyte's CDK",
  async load(workspace, folder) {
    const file = (name: string) => join(folder, name)
    writeFileSync(file('config.json'), JSON.stringify(airbyteConfig(workspace)))
    writeFileSync(file('catalog.json'), JSON.stringify(airbyteCatalog()))
    const runs = outputsIn(folder)
    const state = await lastStates(runs)
    writeFileSync(file('state.json'), JSON.stringify(state))
    const args = ['read', '--config', file('config.json'), '--catalog', file('catalog.json')]
    const output = openSync(file(`output-${runs.length}.jsonl`), 'w')
    return python([join(PYTHON, 'source-declarative-manifest'), ...args, '--state', file('state.json')], {
      env: {},
      output,
      log: openSync(file('airbyte.log'), 'a'),
    })
  },
  async rows(folder) {
    const outputs = outputsIn(folder)
    const last = outputs.at(-1)
    return rowsBy(async list => {
      const rows = new Map<string, string>()
      // Lists without a time are overwritten by each run.
      const read = list === 'activities' || list === 'messages' ? outputs : last ? [last] : []
      for (const output of read) {
        for await (const { record } of messagesOf(output)) {
          if (record?.stream === list) rows.set(record.data.id, record.data[EDITED[list] ?? ''] ?? '')
        }
      }
      return rows
    })
  },
}

interface Row {
  id: string
  value: string
}

/** The part of a message of Airbyte's protocol that is read here. */
interface AirbyteMessage {
  record?: { stream: string; data: { id: string } & Record<string, string | undefined> }
  state?: { stream: { stream_descriptor: { name: string } } }
}

async function rowsBy(
  read: (list: List) => ReadonlyMap<string, string> | Promise<ReadonlyMap<string, string>>,
): Promise<ListedRows> {
  const rows = new Map<List, ReadonlyMap<string, string>>()
  for (const list of LISTS) rows.set(list, await read(list))
  return rows
}

function outputsIn(folder: string): string[] {
  const outputs: string[] = []
  for (let file = ''; ; outputs.push(file)) {
    file = join(folder, `output-${outputs.length}.jsonl`)
    if (!existsSync(file)) return outputs
  }
}

async function* messagesOf(file: string): AsyncGenerator<AirbyteMessage> {
  for await (const line of createInterface({ input: createReadStream(file) })) yield JSON.parse(line)
}

/** The last state of each stream, for the next run. */
async function lastStates(outputs: readonly string[]): Promise<unknown[]> {
  const states = new Map<string, unknown>()
  for (const output of outputs) {
    for await (const { state } of messagesOf(output)) {
      if (state) states.set(state.stream.stream_descriptor.name, state)
    }
  }
  return [...states.values()]
}

interface PythonRun {
  env: NodeJS.ProcessEnv
  /** Descriptors of files. */
  output: number
  log: number
}

function python(args: readonly string[], { env, output, log }: PythonRun): Promise<Usage> {
  const command = [join(PYTHON, 'python'), join(HERE, 'measured.py'), ...args] as const
  const usual = { PATH: process.env['PATH'], ...env }
  return runMeasured(command, { env: usual, stdio: ['ignore', output, log, 'pipe'] }).ended
}
