import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import type { Server, ServerResponse } from 'node:http'
import { targetOf } from '../../src/simulator/operations/target.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'

/** The requests of one route on one day of a life. */
export interface Load {
  route: string
  requests: number
  /** Those that got no answer, or none because of the API itself or its limits. */
  failed: number
}

/** Every request with its answer. What no request may be is said at once. */
export interface Trace {
  count(): number
  /** By day from the start of the life, and by route. */
  loads(): readonly ReadonlyMap<string, Load>[]
  /** The last requests, each as one line. */
  last(): readonly string[]
  digest(): string
}

const DAY = 86_400_000
const FAILED: ReadonlySet<number> = new Set([401, 408, 425, 429])
/** An answer that brings nothing and says that there is more. */
const EMPTY_PAGE = /"data":\[\],.*"has_next_page":true/

const isJson = (body: string): boolean => {
  try {
    JSON.parse(body)
    return true
  } catch {
    return false
  }
}

interface TraceOptions {
  start: number
  now(): number
  /** The most requests of a route that are allowed on this day. */
  allowed(route: string, spent: Load & { failedElsewhere: number }): number
  /** Called before the request is answered. */
  asked(route: string): void
  find(found: string): void
}

export function traceOf(server: Server, { start, now, allowed, asked, find }: TraceOptions): Trace {
  const last: string[] = []
  const digest = createHash('sha256')
  const open = new Map<string, Set<ServerResponse>>()
  const days: Map<string, Load>[] = []
  let count = 0
  server.prependListener('request', (request, response) => {
    const url = String(request.url)
    const began = now()
    const route = targetOf(url).template
    const day = Math.floor((began - start) / DAY)
    while (days.length <= day) days.push(new Map())
    const load = days[day]?.get(route) ?? { route, requests: 0, failed: 0 }
    days[day]?.set(route, load)
    load.requests += 1
    count += 1
    asked(route)
    const failedToday = [...(days[day]?.values() ?? [])].reduce((sum, { failed }) => sum + failed, 0)
    const most = allowed(route, { ...load, failedElsewhere: failedToday - load.failed })
    if (load.requests > most)
      find(`${route} was asked ${load.requests} times on a day on which ${most} times were enough until then`)
    const { searchParams: query } = new URL(url, 'http://api.example')
    const [from, to] = [query.get('from'), query.get('to')]
    if (from !== null && to !== null && from >= to) find(`a request for a time without length: ${url}`)
    const same = open.get(url) ?? new Set()
    open.set(url, same)
    // The server sees the end of its answer later than the client does.
    if ([...same].some(other => !other.writableEnded)) find(`two requests at once for ${url}`)
    same.add(response)
    let isUnusable = false
    const { end } = response
    response.end = (...given: unknown[]) => {
      const body = String(given[0])
      isUnusable = EMPTY_PAGE.test(body.slice(0, 200)) || !isJson(body)
      return Reflect.apply(end, response, given)
    }
    response.once('close', () => {
      same.delete(response)
      if (same.size === 0) open.delete(url)
      const { statusCode } = response
      if (!response.writableFinished || FAILED.has(statusCode) || statusCode >= 500 || isUnusable)
        load.failed += 1
      const line = `${new Date(began).toISOString()} ${url} ${response.headersSent ? response.statusCode : '-'} ${now() - began} ms`
      digest.update(line)
      last.push(line)
      if (last.length > 400) last.splice(0, 200)
    })
  })
  return {
    count: () => count,
    loads: () => days,
    last: () => last,
    digest: () => digest.copy().digest('hex'),
  }
}

/** Where the system puts the file; in the note of the process that writes it. */
const INODE = /\\"inode\\":\d+/

/** A digest of all rows of all tables, without the name of the folder, which each run has its own. */
export function digestOf(folder: string, file: string): string {
  if (!existsSync(file)) return ''
  const db: Sqlite = openSqlite(file, { readonly: true })
  const digest = createHash('sha256')
  try {
    const tables = db
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
      .pluck()
      .all()
    for (const table of tables) {
      digest.update(String(table))
      for (const row of db
        .prepare(`SELECT * FROM "${String(table).replaceAll('"', '""')}"`)
        .raw()
        .iterate())
        digest.update(JSON.stringify(row).replaceAll(folder, '').replace(INODE, ''))
    }
    return digest.digest('hex')
  } finally {
    db.close()
  }
}
