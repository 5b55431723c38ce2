import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fillPath, pathWithQuery } from '../../src/api/request.ts'

describe('the path of a request', () => {
  it.each([
    ['abc-1', '/v2/messages/abc-1'],
    ['a/b?c#d', '/v2/messages/a%2Fb%3Fc%23d'],
    ['..', '/v2/messages/%2E%2E'],
    ['.', '/v2/messages/%2E'],
    ['ü 会', '/v2/messages/%C3%BC%20%E4%BC%9A'],
    ['half \ud800 pair', '/v2/messages/half%20%EF%BF%BD%20pair'],
    ['{id}', '/v2/messages/%7Bid%7D'],
    ['$&', '/v2/messages/%24%26'],
  ])('a path carries %j as one segment', (id, path) => {
    expect(fillPath('/v2/messages/{id}', { id })).toBe(path)
  })

  it('a path never leaves its route, whatever the value', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), id => {
        expect(fillPath('/v1/a/{id}/b', { id })).toMatch(/^\/v1\/a\/[\w.!~*'()%-]*\/b$/)
      }),
    )
  })

  it('a path needs every parameter of its route', () => {
    expect(() => fillPath('/v2/objects/{object}/records/{id}', { id: '1' })).toThrow('{object}')
  })
})

describe('the query of a request', () => {
  it('a query is encoded, and an empty one is left out', () => {
    expect(pathWithQuery({ path: '/v2/x' })).toBe('/v2/x')
    expect(pathWithQuery({ path: '/v2/x', query: {} })).toBe('/v2/x')
    expect(pathWithQuery({ path: '/v2/x', query: { limit: '100', cursor: 'a+b=/&c', thread_id: '' } })).toBe(
      '/v2/x?limit=100&cursor=a%2Bb%3D%2F%26c&thread_id=',
    )
  })

  it('a query arrives as it was given', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ minLength: 1 }), fc.string()), query => {
        const { searchParams } = new URL(pathWithQuery({ path: '/p', query }), 'http://localhost')
        expect(Object.fromEntries(searchParams)).toEqual({ ...query })
      }),
    )
  })
})
