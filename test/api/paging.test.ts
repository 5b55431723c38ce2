import { describe, expect, it } from 'vitest'
import { type PagingStyle, readDataList, readPage, readSingle } from '../../src/api/paging.ts'
import { RetryError } from '../../src/base/errors.ts'
import { decodeJson } from '../../src/base/json.ts'

const items = [{ id: 'a' }, { id: 'b' }]

/** Returns the thrown error, so that both its class and its code can be checked. */
function failure(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return undefined
}

function expectBroken(run: () => unknown) {
  const error = failure(run)
  expect(error).toBeInstanceOf(RetryError)
  expect(error).toMatchObject({ code: 'broken-envelope' })
}

it.each([
  ['v2-cursor', '100', 1000],
  ['v2-cursor', '1', 1000],
  ['v1-page', '200', 2000],
  ['any', undefined, 10_000],
  ['data-list', undefined, 10_000],
] as const)('a page of style %s with limit %s has at most %i items', (style, limit, most) => {
  const read = (count: number) => {
    const paging = { page_info: { end_cursor: null, has_next_page: false }, pagination: { total_pages: 1 } }
    const value = { data: Array.from({ length: count }, () => []), ...(style !== 'any' && paging) }
    return readPage(style, value, limit === undefined ? {} : { limit })
  }
  expect(read(most).items).toHaveLength(most)
  expectBroken(() => read(most + 1))
})

describe('a page of v2', () => {
  const page = (page_info: unknown) => readPage('v2-cursor', { data: items, page_info }, {})

  it('a page of v2 has a next one when has_next_page says so', () => {
    expect(page({ end_cursor: 'c', has_next_page: true })).toEqual({
      items,
      next: { cursor: 'c' },
    })
  })

  it('a page of v2 is the last one when has_next_page says so, even with an end_cursor', () => {
    expect(page({ end_cursor: 'c', has_next_page: false })).toEqual({ items, next: null })
  })

  it.each([null, undefined, ''])('a page of v2 may be the last one with end_cursor %j', end_cursor => {
    expect(page({ end_cursor, has_next_page: false })).toEqual({ items, next: null })
  })

  it.each([
    ['a next page without a cursor', { end_cursor: null, has_next_page: true }],
    ['a next page with an empty cursor', { end_cursor: '', has_next_page: true }],
    ['a next page with a cursor that is no text', { end_cursor: { a: 1 }, has_next_page: true }],
    ['no has_next_page', { end_cursor: 'c' }],
    ['a has_next_page that is no boolean', { end_cursor: 'c', has_next_page: 'false' }],
    ['no page_info', undefined],
    ['a null page_info', null],
  ])('a page of v2 is broken with %s', (_, page_info) => {
    expectBroken(() => page(page_info))
  })
})

describe('a page of v1 by cursor', () => {
  const page = (pagination: unknown) => readPage('v1-cursor', { data: items, pagination }, {})

  it('a page of v1 has a next one when there is a cursor', () => {
    expect(page({ next_cursor: 'c' })).toEqual({ items, next: { cursor: 'c' } })
  })

  it('a cursor is passed on digit for digit, even one that is a number', () => {
    const value = decodeJson('{"data":[],"pagination":{"next_cursor":12345678901234567890}}').value
    expect(readPage('v1-cursor', value, {}).next).toEqual({ cursor: '12345678901234567890' })
    expect(page({ next_cursor: 7 }).next).toEqual({ cursor: '7' })
  })

  it.each([{ next_cursor: null }, {}, { next_cursor: '' }])(
    'a page of v1 is the last one with %j',
    pagination => {
      expect(page(pagination)).toEqual({ items, next: null })
    },
  )

  it.each([undefined, null, 'c', [], { next_cursor: true }])(
    'a page of v1 is broken with pagination %j',
    pagination => {
      expectBroken(() => page(pagination))
    },
  )
})

describe('a page of v1 by number', () => {
  const page = (pagination: unknown, sent: Record<string, string> = {}, data: unknown = items) =>
    readPage('v1-page', { data, pagination }, sent)

  it.each<[string, object, Record<string, string>, object | null, data?: unknown[]]>([
    [
      'fewer than all pages',
      { page: 1, limit: 2, total_size: 5, total_pages: 3 },
      { page: '1' },
      { page: '2' },
    ],
    ['the first page by default', { total_pages: 2 }, {}, { page: '2' }],
    ['all pages', { page: 3, limit: 2, total_size: 5, total_pages: 3 }, { page: '3' }, null, [{}]],
    ['more pages than there are by now', { page: 4, total_pages: 3 }, { page: '4' }, null],
    ['a page that the server does not heed', { page: 1, total_pages: 2 }, { page: '2' }, null],
    ['no total_pages but a size and limit', { limit: 2, total_size: 5 }, { page: '2' }, { page: '3' }],
    ['no total_pages and all of the size', { limit: 2, total_size: 5 }, { page: '3' }, null, [{}]],
    ['no total_pages and the limit sent', { total_size: 5 }, { page: '2', limit: '2' }, { page: '3' }],
    ['no total at all', {}, { page: '7' }, { page: '8' }],
    ['nothing', { total_size: 0, total_pages: 0 }, {}, null, []],
    [
      'fewer pages than its size has',
      { limit: 2, total_size: 5, total_pages: 1 },
      { page: '1' },
      { page: '2' },
    ],
    [
      'more pages than its size has',
      { limit: 2, total_size: 2, total_pages: 3 },
      { page: '2' },
      { page: '3' },
    ],
  ])('a page with %s leads to the right next one', (_, pagination, sent, next, data) => {
    expect(page(pagination, sent, data).next).toEqual(next)
  })

  it('the last page by the totals names the page after it, should they be too low', () => {
    const totals = { limit: 2, total_size: 4, total_pages: 2 }
    expect(page(totals, { page: '1' })).toEqual({ items, next: { page: '2' }, totalSize: 4 })
    expect(page(totals, { page: '2' })).toEqual({ items, next: null, beyond: { page: '3' }, totalSize: 4 })
  })

  it('an empty page without a total is the last one', () => {
    expect(page({}, { page: '9' }, []).next).toBeNull()
  })

  it('an empty page is the last one where only the size says that there is more', () => {
    expect(page({ limit: 2, total_size: 5, total_pages: 1 }, { page: '2' }, []).next).toBeNull()
  })

  it('a numbered page has the size of the list', () => {
    expect(page({ total_size: 5, total_pages: 3 })).toMatchObject({ totalSize: 5 })
  })

  it.each([undefined, null, 3])('a numbered page is broken with pagination %j', pagination => {
    expectBroken(() => page(pagination))
  })
})

describe('a page of any declared style', () => {
  const pagings = { page_info: { has_next_page: false }, pagination: { total_pages: 1 } }

  it.each<PagingStyle>(['v2-cursor', 'v1-cursor', 'v1-page'])(
    'a page (%s) passes on items of every kind',
    style => {
      const odd = [1, null, 'x', [], {}]
      expect(readPage(style, { data: odd, ...pagings }, {}).items).toEqual(odd)
    },
  )

  it.each<PagingStyle>(['v2-cursor', 'v1-cursor', 'v1-page'])(
    'a page (%s) is broken without a list in data',
    style => {
      for (const data of [undefined, null, {}, 'text', { items }]) {
        expectBroken(() => readPage(style, { data, ...pagings }, {}))
      }
      for (const value of [null, 3, 'text', items, {}]) expectBroken(() => readPage(style, value, {}))
    },
  )

  it('the error of a page never quotes a value', () => {
    const error = failure(() => readPage('v2-cursor', { data: 'Hello Ada', 'Ada Lovelace <x>': 'Ada' }, {}))
    expect(error).toMatchObject({ message: expect.stringContaining('an object with data') })
    expect(String(error)).not.toContain('Ada')
  })
})

describe('a list of unknown shape', () => {
  const read = (value: unknown, sent = {}) => readPage('any', value, sent)
  const v2 = { end_cursor: 'c', has_next_page: true }
  const v1 = { next_cursor: 'c' }
  const numbered = { page: 1, limit: 2, total_size: 4, total_pages: 2 }

  it.each<[string, unknown, object]>([
    ['a bare array', items, { next: null, recognised: 'bare' }],
    ['data alone', { data: items }, { next: null, recognised: 'bare' }],
    ['a list of another name alone', { meetings: items, count: 2 }, { next: null, recognised: 'bare' }],
    ['a list of another name in data', { data: { meetings: items } }, { next: null, recognised: 'bare' }],
    ['v2', { data: items, page_info: v2 }, { next: { cursor: 'c' }, recognised: 'v2-cursor' }],
    ['v1 by cursor', { data: items, pagination: v1 }, { next: { cursor: 'c' }, recognised: 'v1-cursor' }],
    [
      'v1 by number',
      { data: items, pagination: numbered },
      { next: { page: '2' }, totalSize: 4, recognised: 'v1-page' },
    ],
    [
      'another name next to its paging',
      { meetings: items, pagination: v1 },
      { next: { cursor: 'c' }, recognised: 'v1-cursor' },
    ],
    [
      'another name in data',
      { data: { meetings: items }, page_info: v2 },
      { next: { cursor: 'c' }, recognised: 'v2-cursor' },
    ],
    [
      'paging in data',
      { data: { meetings: items, pagination: v1 } },
      { next: { cursor: 'c' }, recognised: 'v1-cursor' },
    ],
    [
      'paging keys next to the list',
      { data: items, next_cursor: 'c' },
      { next: { cursor: 'c' }, recognised: 'v1-cursor' },
    ],
    ['an empty paging object', { data: items, pagination: {} }, { next: null, recognised: 'bare' }],
    ['a null paging object', { data: items, pagination: null }, { next: null, recognised: 'bare' }],
    ['other lists next to data', { data: items, warnings: [] }, { next: null, recognised: 'bare' }],
  ])('the shape is recognised: %s', (_, value, page) => {
    expect(read(value)).toEqual({ items, ...page })
  })

  it('the pages continue by number from the requested page', () => {
    expect(read({ data: [{}], pagination: numbered }, { page: '2' }).next).toBeNull()
  })

  it.each([
    ['no list', { data: { id: 'a' } }],
    ['nothing', {}],
    ['null', null],
    ['null in data', { data: null }],
    ['two lists', { meetings: [], people: [] }],
    ['two lists in data', { data: { meetings: [], people: [] } }],
    ['an error', { statusCode: 500, message: 'sorry' }],
    ['paging that is not understood', { data: items, pagination: { has_more: true } }],
    ['a broken page of a known style', { data: items, page_info: { has_next_page: true } }],
  ])('a list is broken, never empty, with %s', (_, value) => {
    expectBroken(() => read(value))
  })
})

describe('the answer of a single read', () => {
  const single = { id: 'a', name: 'n' }

  it.each([
    ['bare', single],
    ['data', { data: single }],
    ['either', single],
    ['either', { data: single }],
  ] as const)('an answer placed %s has the object', (placement, value) => {
    expect(readSingle(value, placement)).toEqual(single)
  })

  it('an object with its id and a field named data is kept', () => {
    const value = { id: 'a', data: { id: 'b' } }
    expect(readSingle(value, 'either', 'id')).toEqual(value)
    expect(readSingle(value, 'bare')).toEqual(value)
    expect(readSingle(value, 'either')).toEqual({ id: 'b' })
  })

  it('an object whose data is a plain value is kept', () => {
    expect(readSingle({ name: 'n', data: 5 }, 'either', 'id')).toEqual({ name: 'n', data: 5 })
  })

  it('the error of an answer without an object says that its data is null', () => {
    const value = { data: null }
    expect(String(failure(() => readSingle(value, 'data')))).toContain('found an object whose data is null')
    expect(readPage('single', value, {})).toEqual({ items: [], next: null })
  })

  it('a list is accepted when the shape is undeclared', () => {
    expect(readSingle({ data: [1] }, 'either')).toEqual([1])
    expect(readPage('single', { data: single }, {})).toEqual({ items: [single], next: null })
  })

  it.each([
    ['bare', null],
    ['bare', 'text'],
    ['data', single],
    ['data', { data: null }],
    ['either', 7],
    ['either', decodeJson('12345678901234567890').value],
  ] as const)('an answer placed %s is broken with %j', (placement, value) => {
    expectBroken(() => readSingle(value, placement))
  })
})

describe('a list in a single answer', () => {
  it.each([[items], [{ data: items }]])('the list is found in %j', value => {
    expect(readDataList(value)).toEqual(items)
    expect(readPage('data-list', value, {})).toEqual({ items, next: null })
  })

  it.each([null, {}, { data: null }, { data: {} }, 'text'])('the list is broken with %j', value => {
    expectBroken(() => readDataList(value))
  })
})
