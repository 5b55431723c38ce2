import { expect, onTestFinished, test } from 'vitest'
import { startSimulator } from '../../src/simulator/server.ts'

async function worldOf(tidy: boolean) {
  const simulator = await startSimulator({ tidy, messages: 50, meetings: 60, deals: 60 })
  onTestFinished(() => simulator.close())
  return simulator
}

test('only a workspace that is not tidy has objects or fields with a hostile name', async () => {
  const hostile = async (tidy: boolean) => {
    const { world } = await worldOf(tidy)
    const names = world.records
      .objects()
      .flatMap(({ name, fields }) => [name, ...fields.map(field => field.name)])
    return names.filter(name => /["';$[\]]/.test(name) || name.length > 60)
  }
  expect(await hostile(true)).toEqual([])
  expect((await hostile(false)).length).toBeGreaterThan(3)
})

test('an edit of a tidy deal moves its stage and its close date, and keeps its name and owner', async () => {
  const { world, apply } = await worldOf(true)
  const deal = world.records.object('deal')
  if (!deal) throw new Error('no deals')
  const fields = (index: number) => JSON.parse(world.records.recordJson(deal, index)).fields
  const before = Array.from({ length: 60 }, (_, index) => fields(index))
  const { ids } = apply({ kind: 'edit', resource: 'crm_records', object: 'deal', count: 40 })
  expect(ids).toHaveLength(40)
  const changed = before.flatMap((old, index) => {
    const now = fields(index)
    return Object.keys(now).filter(name => JSON.stringify(now[name]) !== JSON.stringify(old[name]))
  })
  expect([...new Set(changed)].sort()).toEqual(
    expect.arrayContaining(['close_date', 'next_step', 'stage_id']),
  )
  expect(changed).not.toContain('name')
  expect(changed).not.toContain('owner_id')
})

test('only a workspace that is not tidy lists times in other zones than UTC', async () => {
  const inOtherZones = async (tidy: boolean) => {
    const { world } = await worldOf(tidy)
    const times = [...world.truth().items('messages')].map(({ received_at }) => String(received_at))
    return times.filter(time => !time.endsWith('Z')).length
  }
  expect(await inOtherZones(true)).toBe(0)
  expect(await inOtherZones(false)).toBeGreaterThan(0)
})
