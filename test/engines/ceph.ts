import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { AwsClient } from 'aws4fetch'
import { debianPackages, type Unpacked } from './debian-packages.ts'

/** The S3 API of Ceph: a monitor, a daemon that keeps the objects in memory, and the gateway in front of them. */
export interface Ceph {
  /** Of the S3 API, such as `http://localhost:7480`. It stays the same. */
  url: string
  /** Of the gateway. */
  port: number
  /** Runs `radosgw-admin`. */
  admin(...args: readonly string[]): Promise<void>
  /** Sends a signed request of the owner. @throws Error for an answer that is not a 2xx */
  send(path: string, options: RequestInit, service?: string): Promise<string>
  /** Starts the gateway, with more settings than usual. Does nothing while it runs. */
  start(...settings: readonly string[]): Promise<void>
  /** Kills the gateway without a warning, as by a crash. The objects stay. */
  kill(): Promise<void>
  close(): Promise<void>
}

export const REGION = 'us-east-1'

/** The user whose buckets the tests use. */
export const OWNER = { accessKeyId: 'AKIDOFTHEOWNER', secretAccessKey: 'S3CRET/of+the=owner' }

/** May read the buckets of the owner, and change nothing. */
export const READER = { accessKeyId: 'AKIDOFTHEREADER', secretAccessKey: 'S3CRET/of+the=reader' }

/** Ends with the name of the host, so `bucket.localhost` is an address of the bucket. */
const HOST = 'localhost'

/** For `parley publish` as the owner. */
export const commandEnvironment = ({ url }: Ceph): Record<string, string> => ({
  PARLEY_PUBLISH_S3_ENDPOINT: url,
  PARLEY_PUBLISH_S3_REGION: REGION,
  PARLEY_PUBLISH_S3_ACCESS_KEY_ID: OWNER.accessKeyId,
  PARLEY_PUBLISH_S3_SECRET_ACCESS_KEY: OWNER.secretAccessKey,
})

/** @throws Error when Debian's Ceph cannot be had */
export async function startCeph(): Promise<Ceph> {
  const program = debianPackages('radosgw', 'ceph-mon', 'ceph-osd', 'ceph-common')
  const folder = mkdtempSync(join(tmpdir(), 'parley-ceph-'))
  const [monitorPort = 0, port = 0] = await freePorts(2)
  const settings = writeSettings(program, folder, monitorPort)
  const [run, launch] = [runner(program, settings), launcher(program, settings)]
  await run('monmaptool', '--create', '--addv', 'a', `[v2:127.0.0.1:${monitorPort}]`, `${folder}/monitors`)
  await run('osdmaptool', '--createsimple', '1', `${folder}/daemons`)
  await run(
    'ceph-mon',
    '--mkfs',
    '-i',
    'a',
    '--monmap',
    `${folder}/monitors`,
    '--osdmap',
    `${folder}/daemons`,
  )
  const monitor = launch('ceph-mon', '-i', 'a')
  await run('ceph-osd', '--mkfs', '-i', '0', '--osd-uuid', randomUUID())
  const daemon = launch('ceph-osd', '-i', '0')
  let gateway: ChildProcess | undefined
  const url = `http://${HOST}:${port}`
  const admin: Ceph['admin'] = (...args) => run('radosgw-admin', ...args)
  const ceph: Ceph = {
    url,
    port,
    admin,
    async send(path, options, service = 's3') {
      const client = new AwsClient({ ...OWNER, service, region: REGION, retries: 0 })
      const answer = await client.fetch(`${url}${path}`, options)
      const text = await answer.text()
      if (!answer.ok) throw new Error(`Ceph answers ${answer.status} to ${path}: ${text}`)
      return text
    },
    async start(...more) {
      const front = `--rgw_frontends=beast endpoint=127.0.0.1:${port}`
      if (!gateway || hasEnded(gateway)) gateway = launch('radosgw', '-n', 'client.rgw', front, ...more)
      while (!(await answers(url))) {
        if (hasEnded(gateway)) throw new Error(`The gateway of Ceph ended with ${gateway.exitCode}`)
        await sleep(50)
      }
    },
    kill: () => kill(gateway),
    async close() {
      await Promise.all([gateway, daemon, monitor].map(kill))
      rmSync(folder, { recursive: true, force: true })
    },
  }
  await ceph.start()
  await createUsers(admin)
  return ceph
}

/** The gateway with this setting issues temporary credentials. It then gives no reason for which it denies access. */
export const ISSUES_CREDENTIALS = '--rgw_s3_auth_use_sts=true'

/** Temporary credentials of the owner, which expire after `seconds`. */
export async function temporaryCredentials({ send }: Ceph, seconds: number) {
  const action = new URLSearchParams({
    Action: 'AssumeRole',
    RoleArn: `arn:aws:iam:::role/${ROLE}`,
    RoleSessionName: 'publishing',
    DurationSeconds: String(seconds),
  })
  const answer = await send('/', { method: 'POST', body: String(action), headers: FORM }, 'sts')
  const value = (name: string) => new RegExp(`<${name}>([^<]+)</${name}>`).exec(answer)?.[1] ?? ''
  return {
    accessKeyId: value('AccessKeyId'),
    secretAccessKey: value('SecretAccessKey'),
    sessionToken: value('SessionToken'),
  }
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

const ROLE = 'publisher'

async function createUsers(admin: Ceph['admin']): Promise<void> {
  const keys = ({ accessKeyId, secretAccessKey }: typeof OWNER) => [
    `--access-key=${accessKeyId}`,
    `--secret-key=${secretAccessKey}`,
  ]
  const policy = (statement: object) =>
    JSON.stringify({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', ...statement }] })
  const [owner, reader] = ['--uid=owner', '--subuser=owner:reader']
  await admin('user', 'create', owner, '--display-name=owner', ...keys(OWNER))
  await admin('subuser', 'create', owner, reader, '--access=read', '--key-type=s3', ...keys(READER))
  const trust = policy({ Principal: { AWS: ['arn:aws:iam:::user/owner'] }, Action: ['sts:AssumeRole'] })
  await admin('role', 'create', `--role-name=${ROLE}`, `--assume-role-policy-doc=${trust}`)
  const all = policy({ Action: ['s3:*'], Resource: 'arn:aws:s3:::*' })
  await admin('role-policy', 'put', `--role-name=${ROLE}`, '--policy-name=all', `--policy-doc=${all}`)
}

/** Returns the file. One copy of each object, no keys between the daemons, and no waits between changes of maps. */
function writeSettings({ root }: Unpacked, folder: string, monitorPort: number): string {
  for (const name of ['mon', 'osd', 'run']) mkdirSync(join(folder, name))
  const plugins = join(root, 'usr/lib/x86_64-linux-gnu')
  const settings = {
    fsid: randomUUID(),
    mon_host: `v2:127.0.0.1:${monitorPort}`,
    public_addr: '127.0.0.1',
    ms_bind_msgr1: false,
    ms_mon_client_mode: 'crc secure',
    auth_cluster_required: 'none',
    auth_service_required: 'none',
    auth_client_required: 'none',
    plugin_dir: `${plugins}/ceph`,
    erasure_code_dir: `${plugins}/ceph/erasure-code`,
    osd_class_dir: `${plugins}/rados-classes`,
    mon_data: `${folder}/mon`,
    osd_data: `${folder}/osd`,
    run_dir: `${folder}/run`,
    admin_socket: '',
    log_file: `${folder}/$name.log`,
    mon_cluster_log_file: `${folder}/cluster.log`,
    mon_data_avail_crit: 0,
    paxos_propose_interval: 0.02,
    paxos_min_wait: 0.01,
    mon_allow_pool_size_one: true,
    osd_objectstore: 'memstore',
    osd_crush_chooseleaf_type: 0,
    osd_pool_default_size: 1,
    osd_pool_default_min_size: 1,
    osd_pool_default_pg_num: 1,
    osd_pool_default_pgp_num: 1,
    osd_pool_default_pg_autoscale_mode: 'off',
    rgw_dns_name: HOST,
    rgw_sts_key: 'sixteen-letters.',
    rgw_sts_min_session_duration: 1,
  }
  const file = join(folder, 'ceph.conf')
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`)
  writeFileSync(file, `[global]\n${lines.join('')}`)
  return file
}

const environment = ({ root, libraries }: Unpacked): NodeJS.ProcessEnv => ({
  ...process.env,
  LD_LIBRARY_PATH: `${join(root, 'usr/lib/x86_64-linux-gnu/ceph')}:${libraries}`,
})

const runner =
  (program: Unpacked, settings: string) =>
  async (name: string, ...args: readonly string[]) => {
    const all = ['-c', settings, ...args]
    await promisify(execFile)(join(program.root, 'usr/bin', name), all, { env: environment(program) })
  }

const launcher =
  (program: Unpacked, settings: string) =>
  (name: string, ...args: readonly string[]): ChildProcess =>
    spawn(join(program.root, 'usr/bin', name), ['-c', settings, '-f', ...args], {
      env: environment(program),
      stdio: 'ignore',
    })

const answers = (url: string): Promise<boolean> =>
  fetch(url).then(
    answer => answer.ok,
    () => false,
  )

async function kill(child: ChildProcess | undefined): Promise<void> {
  if (!child || hasEnded(child)) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  const ports = await Promise.all(
    servers.map(async server => {
      await once(server, 'listening')
      const address = server.address()
      return address !== null && typeof address === 'object' ? address.port : 0
    }),
  )
  for (const server of servers) server.close()
  return ports
}
