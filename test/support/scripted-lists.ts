import { type Handler, refused, type ScriptedAnswer, v2Page } from './scripted-api.ts'

/** A list, newest first, with the API's paging: bounds are inclusive and compare every digit of a time. */
export interface ScriptedList<Row extends object> {
  rows: Row[]
  handler: Handler
  /** Refuses all cursors that were issued before this call. */
  expireCursors(): void
}

export interface ListOptions<Row> {
  rows: readonly Row[]
  /** The field of the event time, and the query parameters of the bounds. */
  time: keyof Row & string
  from: string
  to: string
  pageSize: number
  /** Called for each request, before the list answers. May return another answer. */
  instead?: (page: { query: Readonly<Record<string, string>>; number: number }) => ScriptedAnswer | undefined
  /** The answer in place of any page with this row. */
  spoilt?: (row: Row) => ScriptedAnswer | undefined
}

export function scriptedList<Row extends { id: string }>(options: ListOptions<Row>): ScriptedList<Row> {
  const { time, from, to, pageSize } = options
  const list: ScriptedList<Row> = {
    rows: [...options.rows],
    expireCursors: () => {
      epoch += 1
    },
    handler: ({ query }) => {
      number += 1
      const other = options.instead?.({ query, number })
      if (other) return other
      const { ids, cursor } = query
      const sorted = [...list.rows].sort(
        (one, two) => compare(text(two[time]), text(one[time])) || compare(two.id, one.id),
      )
      if (ids !== undefined) {
        const asked = sorted.filter(({ id }) => ids.split(',').includes(id))
        return asked.map(row => options.spoilt?.(row)).find(answer => answer !== undefined) ?? v2Page(asked)
      }
      const [first, last] = [instant(query[from]), instant(query[to])]
      const within = sorted.filter(row => {
        const at = instant(row[time])
        return !(at < first) && !(at > last)
      })
      const [given, afterTime = '', afterId = ''] = (cursor ?? '').split('|')
      if (cursor !== undefined && given !== String(epoch)) return refused(400, 'The cursor has expired')
      const left = within.filter(
        row => cursor === undefined || (compare(text(row[time]), afterTime) || compare(row.id, afterId)) < 0,
      )
      const page = left.slice(0, Math.min(pageSize, Number(query['limit'] ?? pageSize)))
      const spoilt = page.map(row => options.spoilt?.(row)).find(answer => answer !== undefined)
      if (spoilt) return spoilt
      const end = page.at(-1)
      return v2Page(page, end && left.length > page.length ? `${epoch}|${end[time]}|${end.id}` : undefined)
    },
  }
  let epoch = 0
  let number = 0
  return list
}

const text = (value: unknown): string => String(value)
const compare = (one: string, two: string): number => (one < two ? -1 : one > two ? 1 : 0)

/** Times with any number of digits as sortable text; an absent bound matches everything. */
function instant(value: unknown): string | number {
  if (typeof value !== 'string') return Number.NaN
  return value.replace(/(\.\d+)?Z$/, (_, digits = '.') => digits.padEnd(10, '0'))
}
