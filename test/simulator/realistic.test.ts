import { expect, test } from 'vitest'
import { SMALL, walk, withSimulator } from './ask.ts'

test('each copy of a realistic e-mail is in the thread that the thread filter finds it in', async () => {
  await withSimulator({ ...SMALL, realistic: true }, async (_, ask) => {
    const rows = await walk(ask, '/v2/messages', { limit: '100' })
    const threads = new Map<unknown, Set<unknown>>()
    for (const { header_message_id: mail, thread_id: thread } of rows.filter(
      row => row['thread_id'] !== null,
    ))
      threads.set(mail, (threads.get(mail) ?? new Set()).add(thread))
    const split = [...threads.entries()].find(([mail, ids]) => mail !== '' && ids.size === 2)
    expect(split).toBeDefined()
    for (const thread of split?.[1] ?? []) {
      const found = await walk(ask, '/v2/messages', { thread_id: String(thread) })
      expect(found).toEqual(rows.filter(row => row['thread_id'] === thread))
    }
  })
})

test('only a realistic workspace has second currencies, second addresses and orders that look like deals', async () => {
  const namesOf = (realistic: boolean) =>
    withSimulator({ ...SMALL, realistic }, async ({ world }) =>
      world.records
        .objects()
        .flatMap(({ name, fields }) => [name, ...fields.map(field => `${name}.${field.name}`)]),
    )
  const added = ['deal.currency', 'contact.secondary_email', 'renewal_order']
  expect(await namesOf(true)).toEqual(expect.arrayContaining(added))
  const others = await namesOf(false)
  expect(added.filter(name => others.includes(name))).toEqual([])
})

test('a realistic workspace can be small', async () => {
  const nothing = { messages: 3, meetings: 3, deals: 0, companies: 0, contacts: 0, members: 1 }
  await withSimulator({ ...nothing, realistic: true }, async ({ world }, ask) => {
    expect(await walk(ask, '/v2/messages')).not.toEqual([])
    expect([...world.truth().items('meetings')]).not.toEqual([])
  })
})
