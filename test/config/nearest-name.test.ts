import { expect, test } from 'vitest'
import { nearestName } from '../../src/base/nearest-name.ts'

const RESOURCES = ['members', 'teams', 'meetings', 'messages', 'crm_records']

test.each([
  ['a letter too few', 'mesages', 'messages'],
  ['two letters that have changed places', 'taems', 'teams'],
  ['another case', 'TEAM', 'teams'],
  ['two letters of a longer name', 'mettngs', 'meetings'],
  ['two letters of a short name, which is another word', 'deals', undefined],
  ['another word', 'companies', undefined],
])('a name is suggested for %s: %s', (_, name, meant) => {
  expect(nearestName(name, RESOURCES)).toBe(meant)
})
