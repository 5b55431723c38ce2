import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { debianPackages, type Unpacked } from './debian-packages.ts'

/** ClickHouse servers that a test starts, kills and starts again. */
export interface ClickHouseServer {
  /** Of the HTTP interface, such as `127.0.0.1:8123`. It stays the same. */
  host: string
  /** The folder of its data. */
  folder: string
  /** The rows of the answer. @throws Error with the server's message */
  query(sql: string): Promise<unknown[][]>
  /** A statement without an answer. */
  run(sql: string): Promise<void>
  /** Does nothing while it runs. */
  start(): Promise<void>
  /** Without a warning, as by a crash. */
  kill(): Promise<void>
}

export interface Servers {
  servers: readonly ClickHouseServer[]
  close(): Promise<void>
}

/** The engine of the newest version, in a process with a small HTTP interface. */
export async function startNewest(): Promise<Servers> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-newest-'))
  const script = new URL('clickhouse-server.mjs', import.meta.url).pathname
  const [port = 0] = await freePorts(1)
  // It reads only files below its current folder.
  const server = createServerProcess(folder, port, () =>
    spawn(process.execPath, [script, join(folder, 'data'), String(port)], {
      cwd: '/',
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  )
  await server.start()
  return {
    servers: [server],
    async close() {
      await server.kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** @returns a text that says why the servers of Debian cannot be had */
export function debianClickHouse(): Unpacked | string {
  return debianPackages('clickhouse-server', 'libpcre3')
}

/** @returns a text that says why Debian's ZooKeeper cannot be had */
export function debianZooKeeper(): Unpacked | string {
  if (spawnSync('java', ['-version']).status !== 0) return 'java is missing'
  return debianPackages('zookeeper')
}

/** Debian's server. */
export async function startDebian(program: Unpacked): Promise<Servers> {
  const [port = 0, tcp = 0] = await freePorts(2)
  const folder = mkdtempSync(join(tmpdir(), 'parley-debian-clickhouse-'))
  const server = debianServer(program, { folder, port, tcp, more: '' })
  await server.start()
  return {
    servers: [server],
    async close() {
      await server.kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export const CLUSTER = 'two'

/** Two of Debian's servers as the cluster `two`: as two shards, or as the replicas of one; and a ZooKeeper. */
export async function startCluster(
  { clickhouse, zookeeper }: { clickhouse: Unpacked; zookeeper: Unpacked },
  as: 'shards' | 'replicas',
): Promise<Servers> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-cluster-'))
  const [keeperPort = 0, ...ports] = await freePorts(7)
  const keeper = await startZooKeeper(zookeeper, join(folder, 'zookeeper'), keeperPort)
  const places = [0, 1].map(place => {
    const [port = 0, tcp = 0, interserver = 0] = ports.slice(place * 3)
    return { port, tcp, interserver }
  })
  const replicas = places.map(({ tcp }) => `<replica><host>127.0.0.1</host><port>${tcp}</port></replica>`)
  const shards = as === 'replicas' ? [replicas.join('')] : replicas
  const cluster = shards.map(
    shard => `<shard><internal_replication>${as === 'replicas'}</internal_replication>${shard}</shard>`,
  )
  const servers = places.map(({ port, tcp, interserver }, place) => {
    const shard = as === 'replicas' ? 0 : place
    const more = `<remote_servers><${CLUSTER}>${cluster.join('')}</${CLUSTER}></remote_servers>
      <zookeeper><node><host>127.0.0.1</host><port>${keeperPort}</port></node></zookeeper>
      <distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>
      <macros><shard>${shard}</shard><replica>${place}</replica></macros>
      <interserver_http_port>${interserver}</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>`
    return debianServer(clickhouse, { folder: join(folder, `server-${place}`), port, tcp, more })
  })
  await Promise.all(servers.map(server => server.start()))
  return {
    servers,
    async close() {
      await Promise.all(servers.map(server => server.kill()))
      keeper.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface DebianOptions {
  folder: string
  port: number
  tcp: number
  /** More settings, in XML. */
  more: string
}

export const USER = 'parley'
export const PASSWORD = 'a pass<>&w\u00f6rd'

function debianServer(
  { root, libraries }: Unpacked,
  { folder, port, tcp, more }: DebianOptions,
): ClickHouseServer {
  mkdirSync(folder, { recursive: true })
  const user = (password: string) =>
    `<password>${password}</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>`
  writeFileSync(
    join(folder, 'users.xml'),
    `<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default>${user('')}</default><${USER}>${user(PASSWORD.replaceAll('&', '&amp;').replaceAll('<', '&lt;'))}</${USER}></users></yandex>`,
  )
  const config = join(folder, 'config.xml')
  writeFileSync(
    config,
    `<yandex><logger><level>warning</level><log>${folder}/log</log><errorlog>${folder}/errors</errorlog></logger>
      <http_port>${port}</http_port><tcp_port>${tcp}</tcp_port><listen_host>127.0.0.1</listen_host>
      <path>${folder}/data/</path><tmp_path>${folder}/tmp/</tmp_path><users_config>${folder}/users.xml</users_config>
      <mark_cache_size>16777216</mark_cache_size><default_profile>default</default_profile>
      <default_database>default</default_database>${more}</yandex>`,
  )
  return createServerProcess(folder, port, () =>
    spawn(join(root, 'usr/sbin/clickhouse-server'), [`--config-file=${config}`], {
      env: { ...process.env, LD_LIBRARY_PATH: libraries },
      stdio: 'ignore',
    }),
  )
}

async function startZooKeeper({ root }: Unpacked, folder: string, port: number): Promise<ChildProcess> {
  mkdirSync(folder, { recursive: true })
  const config = join(folder, 'zoo.cfg')
  writeFileSync(
    config,
    `tickTime=500\ndataDir=${folder}\nclientPort=${port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n`,
  )
  const jars = join(root, 'usr/share/java')
  const path = readdirSync(jars)
    .filter(name => name.endsWith('.jar'))
    .map(name => join(jars, name))
  const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain'
  const keeper = spawn('java', ['-Xmx128m', '-cp', path.join(':'), main, config], { stdio: 'ignore' })
  // A server of ClickHouse that does not find it may end.
  while (!(await accepts(port))) {
    if (keeper.exitCode !== null) throw new Error(`ZooKeeper ended with ${keeper.exitCode}`)
    await sleep(50)
  }
  return keeper
}

const accepts = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => resolve(true))
    socket.on('connect', () => socket.destroy())
    socket.on('error', () => resolve(false))
  })

function createServerProcess(folder: string, port: number, run: () => ChildProcess): ClickHouseServer {
  const host = `127.0.0.1:${port}`
  let child: ChildProcess | undefined
  const send = (sql: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const options = { method: 'POST', agent: false }
      const sent = request(`http://${host}/?output_format_json_quote_64bit_integers=1`, options, answer => {
        readText(answer).then(text => {
          if (answer.statusCode === 200) resolve(text)
          else reject(new Error(`${text.slice(0, 500)} (${sql.slice(0, 500)})`))
        }, reject)
      })
      sent.on('error', reject)
      sent.end(sql)
    })
  const query = async (sql: string) => JSON.parse(await send(`${sql} FORMAT JSONCompact`)).data
  return {
    host,
    folder,
    query,
    async run(sql) {
      await send(sql)
    },
    async start() {
      if (!child || hasEnded(child)) child = run()
      while (!(await query('SELECT 1').then(Boolean, () => false))) {
        if (hasEnded(child)) throw new Error(`The server at ${host} ended`)
        await sleep(50)
      }
    },
    async kill() {
      if (!child || hasEnded(child)) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null

export async function freePorts(count: number): Promise<number[]> {
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
