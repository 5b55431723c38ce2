import { type Simulator, type SimulatorOptions, startSimulator } from '../../src/simulator/server.ts'

/** A small workspace with something of everything. */
export const SMALL: SimulatorOptions = { seed: 7, messages: 400, meetings: 60, deals: 40, accessLogs: 300 }

export interface Row {
  [field: string]: unknown
}

/** The fields of any list or single read. */
export interface Body extends Row {
  data?: Row[]
  page_info?: { end_cursor: string | null; has_next_page: boolean }
  pagination?: {
    next_cursor?: string | null
    page?: number
    limit?: number
    total_size?: number
    total_pages?: number
  }
  error?: unknown
}

export interface Asked {
  status: number
  text: string
  body: Body
  headers: Headers
}

export type Ask = (
  path: string,
  query?: Record<string, string>,
  headers?: Record<string, string>,
) => Promise<Asked>

export function askOf({ url, apiKey, workspaceId }: Simulator): Ask {
  return async (path, query = {}, headers = {}) => {
    const parameters = new URLSearchParams(query).toString()
    const response = await fetch(`${url}${path}${parameters && `?${parameters}`}`, {
      headers: { 'x-api-key': apiKey, 'x-workspace-id': workspaceId, ...headers },
      redirect: 'manual',
    })
    const text = await response.text()
    const isJson = /^[[{]/.test(text) && response.headers.get('content-type')?.includes('json') === true
    return { status: response.status, text, body: isJson ? safely(text) : {}, headers: response.headers }
  }
}

function safely(text: string): Body {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

/** Runs `use` with a simulator that is closed in any case. */
export async function withSimulator<T>(
  options: SimulatorOptions,
  use: (simulator: Simulator, ask: Ask) => Promise<T>,
): Promise<T> {
  const simulator = await startSimulator(options)
  try {
    return await use(simulator, askOf(simulator))
  } finally {
    await simulator.close()
  }
}

/** Reads a cursor list to its end, v1 or v2. */
export async function walk(ask: Ask, path: string, query: Record<string, string> = {}): Promise<Row[]> {
  const rows: Row[] = []
  let cursor: string | null | undefined
  do {
    const { body } = await ask(path, { ...query, ...(cursor ? { cursor } : {}) })
    rows.push(...(body.data ?? []))
    const { page_info: v2, pagination: v1 } = body
    cursor = v2 ? (v2.has_next_page ? v2.end_cursor : null) : v1?.next_cursor
  } while (cursor)
  return rows
}

/** Microseconds of an RFC 3339 instant, with all its digits. */
export function micros(instant: unknown): number {
  const [, seconds = '', fraction = '', zone = ''] = /^(.{19})(?:\.(\d+))?(.*)$/.exec(String(instant)) ?? []
  return Date.parse(`${seconds}${zone}`) * 1_000 + Number(fraction.padEnd(6, '0'))
}

export const byId = (a: Row, b: Row): number => (String(a['id']) < String(b['id']) ? -1 : 1)

/** The first item, which must be there. */
export function first<T>(items: Iterable<T>, wanted: (item: T) => boolean = () => true): T {
  for (const item of items) if (wanted(item)) return item
  throw new Error('the made-up workspace has no such item')
}
