/** What was asked for: counts by route and status, and the last requests. Never a header. */
export interface RequestLog {
  total(): number
  /** Of one route template, or all; of one status, or all. */
  count(template?: string, status?: number): number
  counts(): { route: string; status: number; count: number }[]
  /** Bytes of JSON that were answered, before compression; faults count as the answers that they spoiled. */
  bytes(): number
  recent(): readonly LoggedRequest[]
  clear(): void
}

export interface LoggedRequest {
  route: string
  path: string
  query: string
  /** 0 when the connection was reset or held without an answer. */
  status: number
}

export interface RequestRecorder extends RequestLog {
  /** `bytes` is the length of the answer before compression. */
  record(request: LoggedRequest, bytes: number): void
}

export function createRequestLog(keep = 1_000): RequestRecorder {
  let counts = new Map<string, Map<number, number>>()
  let recent: LoggedRequest[] = []
  let answered = 0
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
    bytes: () => answered,
    recent: () => recent,
    clear: () => {
      counts = new Map()
      recent = []
      answered = 0
    },
    record: (request, bytes) => {
      answered += bytes
      const statuses = counts.get(request.route) ?? new Map<number, number>()
      statuses.set(request.status, (statuses.get(request.status) ?? 0) + 1)
      counts.set(request.route, statuses)
      recent.push(request)
      // Cut now and then, not every time: the front of an array is dear to remove.
      if (recent.length > keep * 2) recent = recent.slice(-keep)
    },
  }
}
