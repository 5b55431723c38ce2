import { expect, test } from 'vitest'
import { temporaryStore } from './temporary-store.ts'

const NOW = '2026-03-04T05:06:07.000Z'

test('only live rows that refer to a confirmed row count as its dependants', async () => {
  const store = temporaryStore()
  const link = store.db.prepare(
    'INSERT INTO crm_record_links (object, record_id, related_object, related_id) VALUES (?, ?, ?, ?)',
  )
  const suspect = (scope: string, key: string, isConfirmed: boolean) => {
    const row = { table: 'crm_records', scope, key }
    store.suspicions.note(row, { since: NOW, means: 'absent' })
    if (isConfirmed) store.suspicions.confirm(row)
  }
  await store.transaction(() => {
    link.run('deal', '1', 'company', '1')
    link.run('deal', '1', 'company', '2')
    link.run('deal', '2', 'company', '2')
    link.run('company', '1', 'contact', '1')
    suspect('deal', '1', true)
    suspect('deal', '2', false)
  })
  const links = (on: Record<string, string>) =>
    store.stored.countDependants('crm_records', { table: 'crm_record_links', on })
  expect(links({ object: 'object', record_id: 'id' })).toBe(2)
  expect(links({ related_object: 'object', related_id: 'id' })).toBe(0)
  await store.transaction(() => suspect('company', '2', true))
  expect(links({ related_object: 'object', related_id: 'id' })).toBe(2)

  store.put('meetings', [{ meeting_id: 'm' }])
  store.put('playbook_results', [{ id: 'live' }, { id: 'gone' }], { requested: 'm' })
  await store.transaction(() => {
    store.tombstone('playbook_results', [['gone']], NOW)
    store.suspicions.note({ table: 'meetings', scope: '', key: 'm' }, { since: NOW, means: 'absent' })
    store.suspicions.confirm({ table: 'meetings', scope: '', key: 'm' })
  })
  const results = { table: 'playbook_results', on: { meeting_id: 'id' } }
  expect(store.stored.countDependants('meetings', results)).toBe(1)
})
