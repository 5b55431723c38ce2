import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder, npmInstall, ROOT } from '../nodes/node.ts'
import { until } from '../support/until.ts'
import { type DebianMachine, installDebian, startDebian } from './debian-machine.ts'

/**
 * The image and the services of compose.yaml, built and run by Podman on a machine with Debian 13. Images of registries
 * have stand-ins: Debian 13 with the Node that the registry of packages has. The API is a simulator on that machine.
 */

const CLONE = '/root/parley'
const TOKEN = 'a-token-for-the-status-page'
const PODMAN = ['podman', 'podman-compose', 'crun', 'netavark', 'aardvark-dns', 'nftables']
/** Parts of Podman that a machine within another does without: its own control groups and higher limits. */
const CONTAINERS_CONF = `[containers]
cgroups = "disabled"
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
env = ["PODMAN_IGNORE_CGROUPSV1_WARNING=1"]
`
const BUILD = 'BUILDAH_FORMAT=docker'
const BUILD_OPTIONS = '--isolation chroot --network host'
/** Leaves a process behind, whose parent is then process 1 of the container, and notes its number. */
const HOOK = 'setsid sleep 1 & echo $$! > /data/orphan'
const TRIAL = `services:
  parley:
    environment:
      PARLEY_HOOKS_ON_PROBLEM: "${HOOK}"
      PARLEY_HOOKS_WAIT_MINUTES: "0"
      PARLEY_SYNC_POLL_SECONDS: "1"
`
/** The simulator listens on loopback, and the containers reach the machine on another address. */
const START_API = [
  `podman run --detach --name api --network host --no-healthcheck parley simulate --port 9000 --messages 300 --now ${new Date().toISOString()}`,
  'systemd-run --unit api --socket-property ListenStream=0.0.0.0:9001 /usr/lib/systemd/systemd-socket-proxyd 127.0.0.1:9000',
]

let machine: DebianMachine

beforeAll(async () => {
  machine = await startDebian([...PODMAN, 'sqlite3', 'curl'], 'own')
  mkdirSync(join(machine.root, 'etc/containers'), { recursive: true })
  writeFileSync(join(machine.root, 'etc/containers/containers.conf'), CONTAINERS_CONF)
  writeFileSync(join(machine.root, 'etc/resolv.conf'), readFileSync('/etc/resolv.conf'))
  copyClone(join(machine.root, CLONE))
  importBases()
  const build = `${BUILD} podman-compose --profile datasette --podman-build-args '${BUILD_OPTIONS}' build`
  expectDone(`${build} > /root/build.log || { tail -n 50 /root/build.log; false; }`, true)
})

afterAll(async () => {
  await machine?.stop()
})

/** With what a user adds: secrets, settings and a warehouse. */
function copyClone(target: string): void {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  for (const file of listed.split('\0').filter(name => name !== '' && existsSync(join(ROOT, name))))
    cpSync(join(ROOT, file), join(target, file))
  mkdirSync(join(target, 'secrets'), { mode: 0o700 })
  const added = {
    '.env': 'PARLEY_BASE_URL=http://host.containers.internal:9001\nPARLEY_WORKSPACE_ID=demo-workspace\n',
    'secrets/api_key': 'demo-key\n',
    'secrets/http_token': `${TOKEN}\n`,
    'trial.yaml': TRIAL,
    'parley.db': '',
    'config/parley.key': 'demo-key\n',
  }
  for (const [name, text] of Object.entries(added)) writeFileSync(join(target, name), text)
}

/** @throws Error for an image that has no stand-in */
function importBases(): void {
  const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
  const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image = '']) => image)
  const versions = bases.flatMap(image => /^node:(\d+)-trixie-slim$/.exec(image)?.[1] ?? [])
  const foreign = bases.filter(image => !/^(node:\d+-trixie-slim|debian:trixie-slim)$/.test(image))
  if (foreign.length > 0 || new Set(versions).size !== 1)
    throw new Error(`no stand-ins for ${bases.join(', ')}`)

  const tools = emptyFolder('node')
  npmInstall(['--prefix', tools, `node@${versions[0]}`, 'npm@11'])
  const root = emptyFolder('base')
  installDebian(root)
  cpSync(join(tools, 'node_modules/node/bin/node'), join(root, 'usr/local/bin/node'))
  cpSync(join(tools, 'node_modules/npm'), join(root, 'usr/local/lib/node_modules/npm'), { recursive: true })
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm'))
  // A company's certificates, if this machine needs them to reach registries.
  const certificates = process.env['NODE_EXTRA_CA_CERTS']
  if (certificates !== undefined) cpSync(certificates, join(root, 'etc/ssl/certificates.pem'))
  const changes = certificates === undefined ? [] : ['NODE_EXTRA_CA_CERTS', 'PIP_CERT']
  const options = changes.map(name => `--change 'ENV ${name}=/etc/ssl/certificates.pem'`)
  execFileSync('tar', ['-C', root, '-cf', join(machine.root, 'root/base.tar'), '.'])
  execFileSync('rm', ['-rf', '--one-file-system', root])
  expectDone(`podman import --quiet ${options.join(' ')} /root/base.tar stand-in`)
  for (const image of new Set(bases)) expectDone(`podman tag stand-in ${image}`)
}

function expectDone(line: string, isOutside = false): string {
  const { status, said } = machine.run(line, { folder: CLONE, isOutside })
  expect(status, said).toBe(0)
  return said
}

const compose = (words: string) =>
  expectDone(`podman-compose --profile datasette -f compose.yaml -f trial.yaml ${words}`)
const inContainer = (command: string) => `podman exec parley_parley_1 ${command}`
const rowCount = () =>
  Number(expectDone(inContainer(`sqlite3 -readonly parley.db 'SELECT count(*) FROM messages'`)))

async function untilDone(line: string): Promise<string> {
  const { status, said } = await until(
    () => machine.run(line, { folder: CLONE }),
    ({ status }) => status === 0,
  )
  expect(status, said).toBe(0)
  return said
}

/** A container without Compose, as the page says, with the key of a file. */
const runWith = (key: string, words: string) =>
  machine.run(
    `podman run --rm --read-only --cap-drop ALL --security-opt no-new-privileges --env-file .env --volume ${key}:/run/secrets/api_key:ro parley ${words}`,
    { folder: CLONE },
  )

test('a key and a warehouse of the clone are no part of the build', () => {
  expectDone(`${BUILD} podman build ${BUILD_OPTIONS} --quiet --target build --tag build .`, true)
  expect(expectDone('podman run --rm build find / -xdev -name parley.key -o -xdev -name parley.db')).toBe('')
})

test('the services that come up fill the warehouse, and the daemon is healthy', async () => {
  for (const line of START_API) expectDone(line)
  compose('up --detach')
  await untilDone(inContainer('parley status --check'))
  await untilDone('podman healthcheck run parley_parley_1')
  expect(await until(rowCount, rows => rows > 100)).toBeGreaterThan(100)
  expect(expectDone(inContainer(`stat -c '%u:%g %a' /data /data/parley.db`))).toBe(
    '10001:10001 2750\n10001:10001 640\n',
  )
})

test('a secret that an engine mounts is not called readable for others', () => {
  expect(expectDone('podman logs parley_parley_1')).not.toContain('chmod')
})

test('the published port shows the status page to those who have the token', () => {
  const page = (options: string) =>
    expectDone(
      `curl --silent --output /dev/null --write-out '%{http_code}' ${options} http://127.0.0.1:8787/`,
    )
  expect(page('')).toBe('401')
  expect(page(`--user parley:${TOKEN}`)).toBe('200')
})

test('the daemon has no rights and writes nothing but its volume', () => {
  const status = expectDone(inContainer('cat /proc/1/status'))
  for (const line of ['Uid:\t10001', 'Gid:\t10001', 'CapBnd:\t0000000000000000', 'NoNewPrivs:\t1'])
    expect(status).toContain(line)
  expect(machine.run(inContainer('touch /opt/parley/file')).said).toContain('Read-only file system')
})

test.for([
  ['parley doctor', 0],
  ['parley search price', 0],
  ['parley snapshot', 0],
  ['parley resync meetings', 0],
  ['parley backfill', 75],
] as const)('%s in the container of the daemon ends with %i', ([command, wanted]) => {
  const { status, said } = machine.run(inContainer(command))
  expect(status, said).toBe(wanted)
})

test('a container for one command plans a backfill', () => {
  expect(compose('run --rm -T parley backfill --plan')).toContain('requests')
})

test('Datasette shows the warehouse, and cannot change it', async () => {
  const sql = 'select+count(*)+as+rows+from+messages'
  const said = await untilDone(
    `curl --silent --fail 'http://127.0.0.1:8001/parley.json?sql=${sql}&_shape=array'`,
  )
  expect(JSON.parse(said)).toEqual([{ rows: rowCount() }])
  expect(machine.run('podman exec parley_datasette_1 touch /data/file').said).toContain('Read-only')
})

test('without the API the daemon is unhealthy, and its hook leaves no process behind', async () => {
  expectDone('podman stop api')
  await untilDone(inContainer('test -s /data/orphan'))
  await untilDone(inContainer(`sh -c '! test -e "/proc/$(cat /data/orphan)"'`))
  expect(machine.run('podman healthcheck run parley_parley_1').status).toBe(1)
  expect(expectDone(`podman inspect --format '{{json .State.Health.Log}}' parley_parley_1`)).toContain(
    'no request to the API succeeds',
  )
})

test('an empty volume stays that of parley when Datasette mounts it', () => {
  expectDone('podman run --rm --network none --volume empty:/data --entrypoint true parley')
  expectDone('podman run --rm --network none --volume empty:/data:ro parley-datasette --version')
  const folder = expectDone(`podman volume inspect --format '{{.Mountpoint}}' empty`)
  expect(expectDone(`stat -c '%u:%g %a' ${folder}`)).toBe('10001:10001 2750\n')
})

test('SIGTERM ends the daemon with status 0, and the next one continues with its warehouse', async () => {
  const rows = rowCount()
  expectDone('podman start api')
  compose('stop parley')
  expect(expectDone(`podman inspect --format '{{.State.ExitCode}}' parley_parley_1`)).toBe('0\n')
  expect(expectDone('podman logs parley_parley_1')).toContain('Stopped by SIGTERM')
  compose('down')
  compose('up --detach')
  await untilDone(inContainer('parley status --check'))
  expect(rowCount()).toBe(rows)
  expect(expectDone(inContainer(`sqlite3 -readonly parley.db 'PRAGMA integrity_check'`))).toBe('ok\n')
})

test('a snapshot replaces the warehouse while the daemon is stopped', async () => {
  const rows = rowCount()
  const [file] = /\/data\/snapshots\/\S+\.db/.exec(expectDone(inContainer('parley snapshot'))) ?? []
  compose('stop')
  compose(`run --rm -T parley restore ${file}`)
  compose('down')
  compose('up --detach')
  await untilDone(inContainer('parley status --check'))
  expect(rowCount()).toBe(rows)
})

test('a container without Compose reads everything and ends', () => {
  const { status, said } = runWith(`${CLONE}/secrets/api_key`, 'backfill --only members,teams')
  expect(status, said).toBe(0)
})

test('a key that the API refuses ends the daemon with status 77, and the message names its file', () => {
  expectDone('echo another-key > /root/wrong && chmod 644 /root/wrong')
  const { status, said } = runWith('/root/wrong', 'daemon')
  expect(status, said).toBe(77)
  expect(said).toContain('refuses the key')
  expect(said).toContain('/run/secrets/api_key')
})

test('a key that the user of the image cannot read is status 78, and the message names its file', () => {
  expectDone('echo demo-key > /root/closed && chmod 600 /root/closed')
  const { status, said } = runWith('/root/closed', 'daemon')
  expect(status, said).toBe(78)
  expect(said).toContain('/run/secrets/api_key (environment PARLEY_API_KEY_FILE) cannot be read')
})
