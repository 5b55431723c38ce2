import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

test('promtool accepts the job of the page for several workspaces', () => {
  const page = readFileSync(new URL('../../systemd/README.md', import.meta.url), 'utf8')
  const job = /```yaml\n(scrape_configs:\n.*?)```/s.exec(page)?.[1] ?? ''
  const file = join(mkdtempSync(join(tmpdir(), 'parley-alerts-')), 'prometheus.yml')
  writeFileSync(file, job)
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'config', file], { encoding: 'utf8' })
  expect({ status, output: `${stdout}${stderr}` }).toMatchObject({
    status: 0,
    output: expect.stringContaining('SUCCESS'),
  })
  expect(job).toContain('job_name: parley\n')
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
