import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { emptyFolder } from '../nodes/node.ts'
import { type SimulatorProcess, startSimulatorProcess } from '../support/simulator-process.ts'
import { until } from '../support/until.ts'
import { type DebianMachine, startDebian } from './debian-machine.ts'
import { release } from './release.ts'

/** The Debian package on a machine with Debian 13 and its own Node, from the first installation to the purge. */

const DATABASE = '/var/lib/parley/acme/parley.db'

let built: string
let machine: DebianMachine
let simulator: SimulatorProcess

beforeAll(async () => {
  built = release().file('.deb')
  simulator = await startSimulatorProcess({ messages: 300 })
  machine = await startDebian(['nodejs', 'sqlite3', 'curl'])
  copyFileSync(built, join(machine.root, 'root', basename(built)))
  copyFileSync(olderThan(built), join(machine.root, 'root/older.deb'))
  writeFileSync(join(machine.root, 'root/key'), `${simulator.apiKey}\n`)
})

afterAll(async () => {
  await machine?.stop()
  await simulator?.close()
})

/** The same package with an earlier version. */
function olderThan(deb: string): string {
  const folder = emptyFolder('older')
  execFileSync('dpkg-deb', ['-R', deb, join(folder, 'content')])
  const control = join(folder, 'content/DEBIAN/control')
  writeFileSync(control, readFileSync(control, 'utf8').replace(/^Version: .*/m, 'Version: 0.0.1-1'))
  const older = join(folder, 'older.deb')
  execFileSync('dpkg-deb', ['--root-owner-group', '--build', join(folder, 'content'), older])
  return older
}

const expectDone = (line: string) => {
  const { status, said } = machine.run(line)
  expect(status, said).toBe(0)
  return said
}

const rowCount = () =>
  Number(machine.run(`sqlite3 -readonly ${DATABASE} 'SELECT count(*) FROM messages'`).said)

test('lintian has nothing to say about the package', () => {
  const said = execFileSync('lintian', ['--allow-root', '--fail-on', 'none', built], { encoding: 'utf8' })
  expect(said).toBe('')
})

test('the package and one command bring a service that fills its warehouse', async () => {
  expectDone('dpkg -i /root/older.deb')
  expectDone(
    `parley service install acme --base-url ${simulator.url} --workspace-id ${simulator.workspaceId} --api-key-file /root/key`,
  )
  expect(expectDone('systemctl is-active parley@acme.service parley-snapshot@acme.timer')).toBe(
    'active\nactive\n',
  )
  const isFilled = `SELECT min(complete_as_of IS NOT NULL) FROM sync_status WHERE state IN ('ok', 'backfilling')`
  await until(
    () => Promise.resolve(machine.run(`sqlite3 -readonly ${DATABASE} "${isFilled}"`).said),
    said => said === '1\n',
  )
  expect(rowCount()).toBeGreaterThan(100)
  expect(expectDone('curl -s --unix-socket /run/parley/acme.sock http://localhost/readyz')).toBe('ok\n')
  expectDone('systemctl start parley-snapshot@acme.service')
  expect(expectDone('ls /var/lib/parley/acme/snapshots')).toMatch(/^parley-\S+\.db\n$/)
})

test('key and warehouse have the owners and modes that the page names', () => {
  const files = `/etc/parley/acme.key /etc/parley/acme.toml ${DATABASE}`
  expect(expectDone(`stat -c '%U:%G %a %n' ${files}`)).toBe(
    `root:root 600 /etc/parley/acme.key\nroot:root 644 /etc/parley/acme.toml\nparley:parley-readers 640 ${DATABASE}\n`,
  )
})

test('a reload works, and a daemon that was killed is restarted without a report', async () => {
  expectDone('systemctl reload parley@acme.service')
  expectDone('systemctl kill --signal=KILL parley@acme.service')
  const report = 'parley-failed@parley@acme.service.service'
  await until(
    () => Promise.resolve(machine.run(`journalctl -o cat -u ${report}`).said),
    said => said.includes("Skipped due to 'exec-condition'"),
  )
  expectDone('systemctl restart parley@acme.service')
  expect(machine.run('journalctl -o cat -t parley').said).not.toContain('has failed')
})

test('an upgrade starts the running service again and keeps its data', () => {
  const rows = rowCount()
  const pid = () => machine.run('systemctl show -P MainPID parley@acme.service').said.trim()
  const before = pid()
  expectDone(`dpkg -i /root/${basename(built)}`)
  expect(expectDone('systemctl is-active parley@acme.service')).toBe('active\n')
  expect(pid()).not.toBe(before)
  expect(rowCount()).toBe(rows)
})

test('uninstall stops the service and keeps the data, and install starts it again', () => {
  const rows = rowCount()
  expect(expectDone('parley service uninstall acme')).toContain(
    `rm -rf /etc/parley/acme.* /var/lib/parley/acme\n`,
  )
  expect(machine.run('systemctl is-active parley@acme.service').said).toBe('inactive\n')
  expect(rowCount()).toBe(rows)
  expect(machine.run('parley service install acme --workspace-id another').status).toBe(EXIT_STATUS.usage)
  expectDone('parley service install acme')
  expect(expectDone('systemctl is-active parley@acme.service')).toBe('active\n')
})

test('removing the package stops the service, and purging it keeps nothing but the warehouses', () => {
  const rows = rowCount()
  const dropIns = ['parley@acme', 'parley-failed@'].map(unit => `/etc/systemd/system/${unit}.service.d`)
  for (const folder of dropIns) expectDone(`mkdir ${folder} && echo '[Service]' > ${folder}/override.conf`)
  expectDone('dpkg -r parleyd')
  expect(machine.run('systemctl is-active parley@acme.service').said).toBe('inactive\n')
  expect(existsSync(join(machine.root, 'usr/lib/parleyd'))).toBe(false)
  expect(readdirSync(join(machine.root, 'etc/parley')).sort()).toEqual(['acme.key', 'acme.toml'])
  expect(expectDone('dpkg -P parleyd')).toContain('rm -r /var/lib/parley')
  expect(existsSync(join(machine.root, 'etc/parley'))).toBe(false)
  expect(dropIns.filter(folder => existsSync(join(machine.root, folder)))).toEqual([])
  expect(rowCount()).toBe(rows)
})
