import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { GAUGES } from '../../src/server/gauges.ts'

const rules = readFileSync(new URL('../../systemd/alerts.yml', import.meta.url), 'utf8')
const lines = (field: string) =>
  [...rules.matchAll(new RegExp(`^ +(?:- )?${field}: *(.+)$`, 'gm'))].map(([, value]) => value ?? '')

test('every alert uses metrics and labels that the daemon exports', () => {
  const used = lines('expr').flatMap(expr => expr.match(/parley_[a-z_]+/g) ?? [])
  expect(used.length).toBeGreaterThan(8)
  expect(GAUGES.map(({ name }) => name)).toEqual(expect.arrayContaining(used))
  for (const name of used) {
    const labels = new RegExp(`${name}\\{(\\w+)=`).exec(rules)?.[1]
    if (labels !== undefined) expect(GAUGES.find(gauge => gauge.name === name)?.labels).toContain(labels)
  }
})

test('every alert says what is wrong and what to do', () => {
  const alerts = lines('alert')
  expect(alerts).toHaveLength(new Set(alerts).size)
  expect([lines('summary').length, lines('action').length]).toEqual([alerts.length, alerts.length])
})
