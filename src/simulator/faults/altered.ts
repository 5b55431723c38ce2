/** Answers that differ from the right one in their content. Each takes and gives the JSON text of a body. */

type Body = Record<string, unknown> | readonly unknown[]

/** A list without its items, as if there were none. Anything else stays as it is. */
export function withoutItems(body: string): string {
  const list: Body = JSON.parse(body)
  if (Array.isArray(list)) return '[]'
  if (!('data' in list) || !Array.isArray(list.data)) return body
  return JSON.stringify({
    ...list,
    data: [],
    ...('page_info' in list && { page_info: { end_cursor: null, has_next_page: false } }),
    ...('pagination' in list && { pagination: endOf(list['pagination']) }),
  })
}

function endOf(pagination: unknown): unknown {
  const fields = pagination as Record<string, unknown>
  return 'next_cursor' in fields ? { next_cursor: null } : { ...fields, total_size: 0, total_pages: 0 }
}

/** `null` where the data should be. */
export function withoutData(body: string): string {
  const whole: Body = JSON.parse(body)
  return Array.isArray(whole) || !('data' in whole) ? 'null' : JSON.stringify({ ...whole, data: null })
}

/** Another text wherever the expression matches; `$1` in it is the first group. */
export function rewritten(body: string, from: string, to: string): string {
  return body.replace(new RegExp(from, 'g'), to)
}

/** The same values in more bytes: blanks, in number of those of each item. */
export function padded(body: string, bytesOfItem: number): string {
  const list: Body = JSON.parse(body)
  const items = Array.isArray(list) ? list : 'data' in list && Array.isArray(list.data) ? list.data : []
  return `${body.slice(0, 1)}${' '.repeat(items.length * bytesOfItem)}${body.slice(1)}`
}
