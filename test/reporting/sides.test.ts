import { describe, expect, test } from 'vitest'
import { type Domains, guessDomains, isFreeMail, type Side, sideOf } from '../../src/store/reporting/sides.ts'

const KNOWN: Domains = {
  ours: new Set(['set.example']),
  partners: new Set(['partner.example']),
  guessed: new Set(['own.example']),
}
const NOTHING: Domains = { ours: new Set(), partners: new Set(), guessed: new Set() }

describe('the side of a person', () => {
  test.each<[string, string | null, { isMember?: boolean; isInternal?: boolean }, Side]>([
    ['a member at any domain', 'theirs.example', { isMember: true, isInternal: false }, 'ours'],
    ['a domain of the settings', 'set.example', { isInternal: false }, 'ours'],
    ['a partner, whatever a meeting says', 'partner.example', { isInternal: true }, 'partner'],
    ['a contractor whom a meeting calls internal', 'theirs.example', { isInternal: true }, 'ours'],
    ['a guest whom a meeting calls external', 'own.example', { isInternal: false }, 'theirs'],
    ['a domain of members', 'own.example', {}, 'ours'],
    ['any other domain', 'theirs.example', {}, 'theirs'],
    ['an address without a domain', null, {}, 'unknown'],
  ])('%s', (_, domain, { isMember = false, isInternal = null }, side) => {
    expect(sideOf({ domain, isMember, isInternal }, KNOWN)).toBe(side)
  })

  test('is unknown while no domain is known to be ours', () => {
    expect(sideOf({ domain: 'a.example', isMember: false, isInternal: null }, NOTHING)).toBe('unknown')
  })
})

describe('the guessed domains of a workspace', () => {
  test.each([
    ['those of at least two members', ['a@x.example', 'b@x.example', 'c@y.example'], ['x.example']],
    [
      'not that of one contractor',
      ['a@x.example', 'b@x.example', 'c@x.example', 'd@y.example'],
      ['x.example'],
    ],
    ['that of the only member', ['a@x.example'], ['x.example']],
    ['none where anybody can have an address', ['a@gmail.com', 'b@gmail.com', 'c@yahoo.co.jp'], []],
    ['none without members', [], []],
  ])('%s', (_, addresses, domains) => {
    expect(guessDomains(addresses)).toEqual(domains)
  })
})

test.each([
  ...[
    'gmail.com',
    'yahoo.co.jp',
    'outlook.jp',
    'icloud.com',
    'docomo.ne.jp',
    'nifty.com',
    'gmx.de',
    'qq.com',
  ],
])('%s has addresses of people of many companies', domain => {
  expect(isFreeMail(domain)).toBe(true)
})

test.each(['siemens.com', 'toyota.co.jp', 'oracle.com', 'parley-demo.example'])(
  '%s is the domain of one company',
  domain => {
    expect(isFreeMail(domain)).toBe(false)
  },
)
