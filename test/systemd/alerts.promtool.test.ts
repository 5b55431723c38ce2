import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { requirePrograms } from './tools.ts'

requirePrograms('promtool')

const RULES = new URL('../../systemd/alerts.yml', import.meta.url)
const CASES = new URL('alerts.rules.yml', import.meta.url)

const promtool = (command: 'check' | 'test', file: URL) => {
  const { status, stdout, stderr } = spawnSync('promtool', [command, 'rules', fileURLToPath(file)], {
    encoding: 'utf8',
  })
  return { status, output: `${stdout}${stderr}` }
}

test('promtool accepts the rules', () => {
  expect(promtool('check', RULES)).toMatchObject({ status: 0, output: expect.stringContaining('SUCCESS') })
})

test('every alert fires where it should, with its labels and its annotations, and nowhere else', () => {
  expect(promtool('test', CASES)).toMatchObject({ status: 0, output: expect.stringContaining('SUCCESS') })
})

test('every alert has a case in which it fires, and one in which it does not', () => {
  const alerts = [...readFileSync(RULES, 'utf8').matchAll(/- alert: (\w+)/g)].map(([, name]) => name)
  const cases = [...readFileSync(CASES, 'utf8').matchAll(/alertname: (\w+)\n +exp_alerts:( \[\])?/g)]
  const namesOf = (isFiring: boolean) => [
    ...new Set(cases.filter(([, , none]) => (none === undefined) === isFiring).map(([, name]) => name)),
  ]
  expect(namesOf(true).sort()).toEqual(alerts.toSorted())
  expect(namesOf(false).sort()).toEqual(alerts.toSorted())
})
