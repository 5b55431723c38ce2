import type { Workspace } from './workspace.ts'

/** The minimum number of requests to read everything: full pages of each list, and one read for each text. */
export interface LeastRequests {
  lists: number
  /** Reads of texts: the copies of each e-mail in canonical order, until one has a text. */
  texts: number
}

const PAGE = 100

export async function leastRequests(workspace: Workspace, withTexts: boolean): Promise<LeastRequests> {
  const counts = await workspace.counts()
  const pages = (kind: string) => Math.max(1, Math.ceil((counts[kind] ?? 0) / PAGE))
  return {
    lists: pages('activities') + pages('messages'),
    texts: withTexts ? await textReads(workspace) : 0,
  }
}

interface Copy {
  order: string
  hasText: boolean
}

async function textReads(workspace: Workspace): Promise<number> {
  const emails = new Map<string, Copy[]>()
  for await (const line of workspace.lines('messages')) {
    const {
      id,
      header_message_id: header,
      received_at,
      text,
    } = JSON.parse(line) as Record<string, string | null>
    const key = header || `id:${id}`
    const copy = { order: `${new Date(received_at ?? '').toISOString()} ${id}`, hasText: text !== null }
    const copies = emails.get(key)
    if (copies) copies.push(copy)
    else emails.set(key, [copy])
  }
  let reads = 0
  for (const copies of emails.values()) {
    const first = copies.sort((a, b) => (a.order < b.order ? -1 : 1)).findIndex(({ hasText }) => hasText)
    reads += first < 0 ? copies.length : first + 1
  }
  return reads
}
