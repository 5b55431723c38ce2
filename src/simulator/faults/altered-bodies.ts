/** Bodies whose content differs from the right answer. Each function takes and returns the JSON text of a body. */

type Body = Record<string, unknown> | readonly unknown[]

/** An empty list in place of a list. Any other body is unchanged. */
export function withoutItems(body: string): string {
  const list: Body = JSON.parse(body)
  if (Array.isArray(list)) return '[]'
  if (!('data' in list) || !Array.isArray(list.data)) return body
  return JSON.stringify({
    ...list,
    data: [],
    ...('page_info' in list && { page_info: { end_cursor: null, has_next_page: false } }),
    ...('pagination' in list && { pagination: endOfList(list['pagination']) }),
  })
}

/** An escaped character of a string, or a mark. */
const MARK = /\\.|[",[\]{}]/g

/**
 * A list without about half of its items; `draw` decides which. The others keep every digit. Any other body is
 * unchanged.
 */
export function withoutSomeItems(body: string, draw: (item: number) => number): string {
  const start = body.startsWith('[') ? 1 : body.startsWith('{"data":[') ? '{"data":['.length : undefined
  if (start === undefined) return body
  const items: string[] = []
  let from = start
  let depth = 0
  let isString = false
  for (const { 0: mark, index } of body.slice(start).matchAll(MARK)) {
    const at = start + index
    if (mark === '"') isString = !isString
    if (isString) continue
    if (depth === 0 && (mark === ',' || mark === ']')) {
      items.push(body.slice(from, at))
      from = at + 1
      if (mark === ']') break
    } else if ('[{'.includes(mark)) depth += 1
    else if (']}'.includes(mark)) depth -= 1
  }
  const some = items.filter((_, item) => draw(item) % 2 === 0)
  return `${body.slice(0, start)}${some.join(',')}${body.slice(from - 1)}`
}

const UUID = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g

export const withUpperCaseIds = (body: string): string => body.replace(UUID, id => id.toUpperCase())

function endOfList(pagination: unknown): unknown {
  const fields = pagination as Record<string, unknown>
  return 'next_cursor' in fields ? { next_cursor: null } : { ...fields, total_size: 0, total_pages: 0 }
}

/** `null` in place of the data. */
export function withoutData(body: string): string {
  const whole: Body = JSON.parse(body)
  return Array.isArray(whole) || !('data' in whole) ? 'null' : JSON.stringify({ ...whole, data: null })
}

/** Replaces each match of the expression `from`; `$1` in `to` is the first group. */
export function withReplacedText(body: string, from: string, to: string): string {
  return body.replace(new RegExp(from, 'g'), to)
}

/** The same values with more bytes: `bytesPerItem` spaces for each item of a list. */
export function withPadding(body: string, bytesPerItem: number): string {
  const list: Body = JSON.parse(body)
  const items = Array.isArray(list) ? list : 'data' in list && Array.isArray(list.data) ? list.data : []
  return `${body.slice(0, 1)}${' '.repeat(items.length * bytesPerItem)}${body.slice(1)}`
}
