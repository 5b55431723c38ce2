import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { SimulatorOptions } from '../../../src/simulator/server.ts'
import type { Usage } from '../measured-process.ts'
import { startWorkspace, type Workspace } from '../workspace.ts'
import { EDITED, installPeers, LISTS, type List, type ListedRows, type Peer, peers } from './peers.ts'

/**
 * The same lists with parley and with what people would use in its place: the first load, the next one after a week of
 * changes, what is wrong then, and a load under a rate limit. Each has a workspace of its kind, made from one seed.
 */

export interface PeerMeasured {
  name: string
  first: Load
  next: Load
  /** After the second load. */
  wrong: Wrong
  limited: Load
}

export interface Load extends Usage {
  requests: number
  /** Those of them that were answered 429. */
  refused: number
}

/** Numbers of rows of all lists. */
export interface Wrong {
  missing: number
  /** Rows that the API does not list any more. */
  gone: number
  /** Rows with a value from before an edit. */
  stale: number
}

export interface PeersOptions {
  folder: string
  program: string
  messages: number
}

/** The most messages of the workspace with a limit. */
const MOST_LIMITED = 5000
export const LIMIT = { kind: 'token-bucket', rate: 10, burst: 10 } as const

const WEEK = [
  { kind: 'publish', resource: 'messages', count: 200 },
  { kind: 'publishLate', resource: 'messages', count: 60 },
  { kind: 'edit', resource: 'messages', count: 60 },
  { kind: 'delete', resource: 'messages', count: 60 },
  { kind: 'edit', resource: 'members', count: 2 },
  { kind: 'hide', resource: 'members', count: 2 },
  { kind: 'edit', resource: 'collections', count: 2 },
  { kind: 'delete', resource: 'collections', count: 2 },
] as const

export async function measurePeers(options: PeersOptions): Promise<PeerMeasured[]> {
  await installPeers()
  const measured: PeerMeasured[] = []
  for (const peer of peers(options.program)) {
    process.stderr.write(`${peer.name}\n`)
    measured.push(await measurePeer(peer, options))
  }
  return measured
}

async function measurePeer(peer: Peer, { folder, messages }: PeersOptions): Promise<PeerMeasured> {
  const place = (name: string) => {
    const path = join(folder, peer.name.replaceAll(/\W/g, '-'), name)
    mkdirSync(path, { recursive: true })
    return path
  }
  const sizes = { messages, meetings: 200, deals: 100, members: 60, now: 'real', tidy: true }
  const unlimited = await withWorkspace(sizes, async workspace => {
    const first = await load(peer, workspace, place('unlimited'))
    for (const change of WEEK) await workspace.change(change)
    const next = await load(peer, workspace, place('unlimited'))
    return { first, next, wrong: wrongIn(await peer.rows(place('unlimited')), await truthOf(workspace)) }
  })
  const fewer = { ...sizes, messages: Math.min(messages, MOST_LIMITED), limit: LIMIT, latencyMs: 20 }
  const limited = await withWorkspace(fewer, workspace => load(peer, workspace, place('limited')))
  return { name: peer.name, ...unlimited, limited }
}

async function withWorkspace<T>(
  options: SimulatorOptions,
  work: (workspace: Workspace) => Promise<T>,
): Promise<T> {
  const workspace = await startWorkspace(options)
  try {
    return await work(workspace)
  } finally {
    await workspace.close()
  }
}

async function load(peer: Peer, workspace: Workspace, folder: string): Promise<Load> {
  await workspace.forgetRequests()
  const usage = await peer.load(workspace, folder)
  const { total, counts } = await workspace.requests()
  const refused = counts.reduce((sum, { status, count }) => sum + (status === 429 ? count : 0), 0)
  return { ...usage, requests: total, refused }
}

async function truthOf(workspace: Workspace): Promise<ListedRows> {
  const truth = new Map<List, ReadonlyMap<string, string>>()
  for (const list of LISTS) {
    const rows = new Map<string, string>()
    for await (const line of workspace.lines(list)) {
      const item = JSON.parse(line)
      rows.set(item.id, item[EDITED[list] ?? ''] ?? '')
    }
    truth.set(list, rows)
  }
  return truth
}

export function wrongIn(found: ListedRows, truth: ListedRows): Wrong {
  const wrong: Wrong = { missing: 0, gone: 0, stale: 0 }
  for (const list of LISTS) {
    const [there, right] = [found.get(list) ?? new Map(), truth.get(list) ?? new Map()]
    for (const [id, value] of right) {
      if (!there.has(id)) wrong.missing += 1
      else if ((there.get(id) ?? '') !== value) wrong.stale += 1
    }
    for (const id of there.keys()) if (!right.has(id)) wrong.gone += 1
  }
  return wrong
}
