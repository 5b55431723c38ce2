/** The received requests: counts by route and status, and the most recent requests. No headers are stored. */
export interface RequestLog {
  total(): number
  /** Requests of one route template or all, with one status or all. */
  count(template?: string, status?: number): number
  counts(): { route: string; status: number; count: number }[]
  /** Bytes of JSON in the answers, before compression. A faulty answer counts with the bytes of the right one. */
  bytes(): number
  recent(): readonly LoggedRequest[]
  clear(): void
}

export interface LoggedRequest {
  route: string
  path: string
  query: string
  /** 0 when the connection was reset or stalled without an answer. */
  status: number
}

export interface RequestRecorder extends RequestLog {
  /** `bytes`: the length of the answer before compression. */
  record(request: LoggedRequest, bytes: number): void
}

export function createRequestLog(keep = 1_000): RequestRecorder {
  let counts = new Map<string, Map<number, number>>()
  let recent: LoggedRequest[] = []
  let answeredBytes = 0
  const rows = () =>
    [...counts].flatMap(([route, statuses]) =>
      [...statuses].map(([status, count]) => ({ route, status, count })),
    )
  const count = (template?: string, status?: number): number =>
    rows()
      .filter(
        row =>
          (template === undefined || row.route === template) &&
          (status === undefined || row.status === status),
      )
      .reduce((sum, row) => sum + row.count, 0)
  return {
    total: () => count(),
    count,
    counts: rows,
    bytes: () => answeredBytes,
    recent: () => recent,
    clear: () => {
      counts = new Map()
      recent = []
      answeredBytes = 0
    },
    record: (request, bytes) => {
      answeredBytes += bytes
      const statuses = counts.get(request.route) ?? new Map<number, number>()
      statuses.set(request.status, (statuses.get(request.status) ?? 0) + 1)
      counts.set(request.route, statuses)
      recent.push(request)
      // `recent` is trimmed only at twice `keep`, since removing the front of an array is expensive.
      if (recent.length > keep * 2) recent = recent.slice(-keep)
    },
  }
}
