import { expect, test } from 'vitest'
import { FAULT_KINDS, type Fault } from '../../src/simulator/faults/faults.ts'
import { askOf, SMALL, walk, withSimulator } from './ask.ts'

const statuses = async (fault: Fault, requests: number): Promise<number[]> =>
  withSimulator({ ...SMALL, faults: [fault] }, async (_, ask) => {
    const seen: number[] = []
    for (let n = 0; n < requests; n++) seen.push((await ask('/v1/members')).status)
    return seen
  })

test('a status fault has the given status, with HTML when a gateway answers', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    for (const status of [500, 502, 503, 504]) {
      simulator.setFaults([{ kind: 'status', status, retryAfter: 3 }])
      const answer = await ask('/v2/messages')
      expect(answer.status).toBe(status)
      expect(answer.headers.get('retry-after')).toBe('3')
      expect(answer.headers.get('content-type')).toContain(status === 502 || status === 504 ? 'html' : 'json')
    }
  }))

test('a fault skips the first requests and hits a limited number', async () => {
  expect(await statuses({ kind: 'status', afterRequests: 2, atMost: 2 }, 6)).toEqual([
    200, 200, 500, 500, 200, 200,
  ])
})

test('the seed decides which requests a probability hits', async () => {
  const once = await statuses({ kind: 'status', probability: 0.4 }, 40)
  expect(await statuses({ kind: 'status', probability: 0.4 }, 40)).toEqual(once)
  expect(new Set(once)).toEqual(new Set([200, 500]))
})

test('a fault of one route does not hit the others', () =>
  withSimulator(
    { ...SMALL, faults: [{ kind: 'html', route: '/v2/messages/{messageId}' }] },
    async (simulator, ask) => {
      expect((await ask('/v2/messages')).status).toBe(200)
      const { items } = simulator.world.messages
      const struck = await ask(`/v2/messages/${items.ids.of(0)}`)
      expect(struck.status).toBe(200)
      expect(struck.headers.get('content-type')).toContain('html')
    },
  ))

test('a reset ends the connection, before the answer or in the middle of it', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    for (const kind of ['reset', 'reset-in-body'] as const) {
      simulator.setFaults([{ kind }])
      await expect(ask('/v2/messages')).rejects.toThrow()
    }
    simulator.setFaults([])
    expect((await ask('/v2/messages')).status).toBe(200)
  }))

test('a truncated answer is a complete 200 with half of its JSON', () =>
  withSimulator({ ...SMALL, faults: [{ kind: 'truncate' }] }, async (_, ask) => {
    const { status, text } = await ask('/v2/messages')
    expect(status).toBe(200)
    expect(() => JSON.parse(text)).toThrow()
  }))

test('a wrong content type comes with the right body', () =>
  withSimulator({ ...SMALL, faults: [{ kind: 'wrong-type' }] }, async (_, ask) => {
    const { headers, text } = await ask('/v1/members')
    expect(headers.get('content-type')).toBe('text/plain')
    expect(JSON.parse(text)).toHaveProperty('data')
  }))

test('a stall sends no headers, or stops in the body, until the client disconnects', () =>
  withSimulator({ ...SMALL, faults: [{ kind: 'stall' }] }, async simulator => {
    const headers = { 'x-api-key': simulator.apiKey, 'x-workspace-id': simulator.workspaceId }
    const stalled = fetch(`${simulator.url}/v1/members`, { headers, signal: AbortSignal.timeout(150) })
    await expect(stalled).rejects.toThrow()
    simulator.setFaults([{ kind: 'stall-in-body' }])
    const patience = new AbortController()
    const begun = await fetch(`${simulator.url}/v1/members`, { headers, signal: patience.signal })
    expect(begun.status).toBe(200)
    const body = begun.text()
    patience.abort()
    await expect(body).rejects.toThrow()
  }))

test('an endless body continues longer than any client reads', () =>
  withSimulator({ ...SMALL, faults: [{ kind: 'endless' }] }, async simulator => {
    const headers = { 'x-api-key': simulator.apiKey, 'x-workspace-id': simulator.workspaceId }
    const { body } = await fetch(`${simulator.url}/v2/messages`, { headers })
    let bytes = 0
    for await (const chunk of body ?? []) {
      bytes += chunk.length
      if (bytes > 20_000_000) break
    }
    expect(bytes).toBeGreaterThan(20_000_000)
  }))

test('a repeated cursor is the cursor of the page that was just read', () =>
  withSimulator({ ...SMALL, faults: [{ kind: 'repeat-cursor' }] }, async (_, ask) => {
    for (const path of ['/v2/messages', '/v1/collections']) {
      const cursorOf = async (query: Record<string, string>) => {
        const { page_info: v2, pagination: v1 } = (await ask(path, { limit: '2', ...query })).body
        return v2?.end_cursor ?? v1?.next_cursor ?? ''
      }
      const cursor = await cursorOf({})
      expect(cursor).not.toBe('')
      expect(await cursorOf({ cursor })).toBe(cursor)
    }
  }))

test('a cursor expires after a number of uses or by age', async () => {
  let now = 0
  const clock = { now: () => now, elapsed: () => now, sleep: async () => undefined }
  await withSimulator(
    { ...SMALL, clock, faults: [{ kind: 'expire-cursor', uses: 1 }] },
    async (simulator, ask) => {
      const cursorOf = async () => (await ask('/v2/messages')).body.page_info?.end_cursor ?? ''
      const worn = await cursorOf()
      expect((await ask('/v2/messages', { cursor: worn })).status).toBe(200)
      expect((await ask('/v2/messages', { cursor: worn })).status).toBe(400)
      simulator.setFaults([{ kind: 'expire-cursor', ageMs: 1_000 }])
      const old = await cursorOf()
      now = 999
      expect((await ask('/v2/messages', { cursor: old })).status).toBe(200)
      now = 1_000
      expect((await ask('/v2/messages', { cursor: old })).status).toBe(400)
    },
  )
})

test('a cursor that expired by age is valid again when the restarted list issues it again', async () => {
  let now = 0
  const clock = { now: () => now, elapsed: () => now, sleep: async () => undefined }
  await withSimulator(
    { ...SMALL, clock, faults: [{ kind: 'expire-cursor', ageMs: 1_000 }] },
    async (_, ask) => {
      const cursorOf = async () => (await ask('/v2/messages')).body.page_info?.end_cursor ?? ''
      const cursor = await cursorOf()
      now = 1_000
      expect((await ask('/v2/messages', { cursor })).status).toBe(400)
      expect(await cursorOf()).toBe(cursor)
      now = 1_999
      expect((await ask('/v2/messages', { cursor })).status).toBe(200)
      now = 2_000
      expect((await ask('/v2/messages', { cursor })).status).toBe(400)
    },
  )
})

test('a redirect leads to a path that would see the key', () =>
  withSimulator({ ...SMALL, faults: [{ kind: 'redirect', atMost: 1 }] }, async (simulator, ask) => {
    const { status, headers } = await ask('/v1/members')
    expect(status).toBe(302)
    expect(headers.get('location')).toBe('/elsewhere')
    expect(simulator.requests.count('/elsewhere')).toBe(0)
  }))

test('a late answer is overtaken, and has the state of the time of its request', () =>
  withSimulator({ ...SMALL, faults: [{ kind: 'late', atMost: 1 }] }, async (_, ask) => {
    const order: string[] = []
    const late = ask('/v1/members').then(({ status }) => order.push(`late ${status}`))
    const other = ask('/v1/teams').then(({ status }) => order.push(`other ${status}`))
    await Promise.all([late, other])
    expect(order).toEqual(['other 200', 'late 200'])
  }))

test('without faults every answer is right, and faults do not change the truth', () =>
  withSimulator({ ...SMALL, faults: FAULT_KINDS.map(kind => ({ kind, probability: 0.1 })) }, async struck => {
    const lines = [...struck.world.truth().lines('messages')]
    struck.setFaults([])
    expect(await walk(askOf(struck), '/v2/messages')).toHaveLength(lines.length)
    await withSimulator(SMALL, async plain => {
      expect([...plain.world.truth().lines('messages')]).toEqual(lines)
    })
  }))

test('a fault of one path, one id or one item hits no other request', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const { ids } = simulator.world.messages.items
    const [first, second] =
      (await ask('/v2/messages', { limit: '2' })).body.data?.map(({ id }) => String(id)) ?? []
    const statusOf = async (path: string, query = {}) => (await ask(path, query)).status
    simulator.setFaults([{ kind: 'status', status: 404, path: '/v2/objects/deal/records' }])
    expect(await statusOf('/v2/objects/deal/records')).toBe(404)
    expect(await statusOf('/v2/objects/company/records')).toBe(200)
    simulator.setFaults([{ kind: 'status', status: 403, requestHas: first ?? '' }])
    expect(await statusOf(`/v2/messages/${first}`)).toBe(403)
    expect(await statusOf('/v2/messages', { ids: `${first},${second}` })).toBe(403)
    expect(await statusOf('/v2/messages', { ids: `${second}` })).toBe(200)
    simulator.setFaults([{ kind: 'status', answerHas: second ?? '' }])
    expect(await statusOf('/v2/messages', { limit: '1' })).toBe(200)
    expect(await statusOf('/v2/messages', { limit: '2' })).toBe(500)
    expect(await statusOf(`/v2/messages/${ids.of(0)}`)).toBe(200)
  }))

test('a list can be empty, as if it had ended, while single answers are unchanged', () =>
  withSimulator({ ...SMALL, faults: [{ kind: 'empty' }] }, async (simulator, ask) => {
    const emptied = async (path: string) => JSON.parse((await ask(path)).text)
    expect(await emptied('/v2/messages')).toEqual({
      data: [],
      page_info: { end_cursor: null, has_next_page: false },
    })
    expect(await emptied('/v1/collections')).toEqual({ data: [], pagination: { next_cursor: null } })
    expect(await emptied('/v1/members')).toMatchObject({ data: [], pagination: { page: 1, total_size: 0 } })
    const id = simulator.world.messages.items.ids.of(0)
    expect(await emptied(`/v2/messages/${id}`)).toMatchObject({ id })
  }))

test('the data of an answer can be null', () =>
  withSimulator({ ...SMALL, faults: [{ kind: 'null-data' }] }, async (simulator, ask) => {
    expect((await ask('/v1/members')).body).toMatchObject({ data: null, pagination: { page: 1 } })
    expect((await ask(`/v2/messages/${simulator.world.messages.items.ids.of(0)}`)).text).toBe('null')
  }))

test('a page can be larger for each of its items, with the same content', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const plain = await ask('/v2/messages', { limit: '3' })
    simulator.setFaults([{ kind: 'bloat', bytesPerItem: 1_000 }])
    const large = await ask('/v2/messages', { limit: '3' })
    expect(large.text.length - plain.text.length).toBe(3_000)
    expect(JSON.parse(large.text)).toEqual(JSON.parse(plain.text))
  }))

test('an answer can be rewritten, differently each time', () =>
  withSimulator(
    { ...SMALL, faults: [{ kind: 'rewrite', from: '"role":"[^"]*"', to: '"role":"role {n}"' }] },
    async (_, ask) => {
      const rolesOf = async () => new Set((await ask('/v1/members')).body.data?.map(({ role }) => role))
      expect(await rolesOf()).toEqual(new Set(['role 0']))
      expect(await rolesOf()).toEqual(new Set(['role 1']))
    },
  ))

test('a list can show other halves of its items each time', () =>
  withSimulator(
    { ...SMALL, faults: [{ kind: 'partial', route: '/v2/messages' }] },
    async (simulator, ask) => {
      const shown = async () => (await ask('/v2/messages?limit=100')).body.data?.map(({ id }) => id) ?? []
      const [one, other] = [await shown(), await shown()]
      expect(one).not.toEqual(other)
      simulator.setFaults([])
      const all = await shown()
      for (const some of [one, other]) {
        expect(some.length).toBeGreaterThan(all.length / 4)
        expect(some.length).toBeLessThan((all.length * 3) / 4)
        expect(all).toEqual(expect.arrayContaining(some))
      }
    },
  ))

test('an answer can be any body, without a refusal', () =>
  withSimulator({ ...SMALL, faults: [{ kind: 'body', to: '{"data":[],"n":{n}}' }] }, async (_, ask) => {
    expect((await ask('/v2/messages?cursor=invented')).text).toBe('{"data":[],"n":0}')
    expect((await ask('/nowhere')).text).toBe('{"data":[],"n":1}')
  }))

test('ids can come in upper case, and the date from a clock that is ahead', async () => {
  const clock = { now: () => 0, elapsed: () => 0, sleep: async () => undefined }
  await withSimulator(
    { ...SMALL, clock, faults: [{ kind: 'upper-case' }, { kind: 'ahead', delayMs: 3_600_000 }] },
    async (simulator, ask) => {
      const answer = async () => {
        const { body, headers } = await ask('/v2/messages')
        return { id: String(body.data?.[0]?.id), date: Date.parse(headers.get('date') ?? '') }
      }
      const wrong = await answer()
      simulator.setFaults([])
      const { id, date } = await answer()
      expect(wrong).toEqual({ id: id.toUpperCase(), date: date + 3_600_000 })
    },
  )
})

test('a replica shows each change only after its lag, and then exactly the same', async () => {
  let now = 0
  const clock = { now: () => now, elapsed: () => now, sleep: async () => undefined }
  await withSimulator({ ...SMALL, clock }, async (simulator, ask) => {
    const messages = async (behind: boolean) => {
      simulator.setFaults(behind ? [{ kind: 'lag', delayMs: 5_000 }] : [])
      return (await ask('/v2/messages')).text
    }
    const before = await messages(false)
    now = 1_000
    const { ids } = simulator.apply({ kind: 'publish', resource: 'messages', count: 2 })
    expect(() => simulator.apply({ kind: 'edit', resource: 'messages', id: 'nobody' })).toThrow(RangeError)
    now = 2_000
    simulator.apply({ kind: 'delete', resource: 'messages', ids: ids.slice(1) })
    const after = await messages(false)
    expect(await messages(true)).toBe(before)
    now = 6_500
    const between = await messages(true)
    expect([before, after]).not.toContain(between)
    now = 7_000
    expect(await messages(true)).toBe(after)
  })
})

test('a replica gives the items of a change the same times as the workspace while the clock moves', async () => {
  let now = 0
  // Each reading of the clock is a millisecond later than the one before.
  const clock = { now: () => now++, elapsed: () => now, sleep: async () => undefined }
  await withSimulator({ ...SMALL, clock }, async (simulator, ask) => {
    simulator.apply({ kind: 'publish', resource: 'messages', count: 3 })
    const { text } = await ask('/v2/messages', { limit: '3' })
    now += 60_000
    simulator.setFaults([{ kind: 'lag', delayMs: 1_000 }])
    expect((await ask('/v2/messages', { limit: '3' })).text).toBe(text)
  })
})

test('the clock of a replica never goes back when the lag grows', async () => {
  let now = 0
  const clock = { now: () => now, elapsed: () => now, sleep: async () => undefined }
  await withSimulator({ ...SMALL, clock, overviewsCompleteAfterMs: 5_000 }, async (simulator, ask) => {
    const laggingBy = async (delayMs: number) => {
      simulator.setFaults([{ kind: 'lag', delayMs }])
      return (await ask('/v1/meetings')).text
    }
    const pending = await laggingBy(0)
    now = 6_000
    const completed = await laggingBy(1_000)
    expect(completed).not.toBe(pending)
    expect(await laggingBy(2_000)).toBe(completed)
  })
})
