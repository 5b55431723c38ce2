import { EXIT_STATUS, StopError } from '../../errors.ts'

/** The address of a database: `clickhouse://host:8123/database?secure&cluster=NAME&replicated`. Pure. */

export interface ClickHouseAddress {
  /** For messages: the address with its port, without parameters. */
  name: string
  /** Of the HTTP interface. */
  url: string
  database: string
  /** The tables are divided over the shards of this cluster. */
  cluster: string | undefined
  /** The tables of a cluster are replicated. */
  isReplicated: boolean
}

const SCHEME = 'clickhouse:'
const PORT = { plain: '8123', secure: '8443' } as const

/** A name that needs no quotes in any place of SQL. */
const NAME = /^[A-Za-z_][\w-]{0,99}$/

/**
 * Undefined when the text has another scheme.
 * @throws StopError 64 when the address is incomplete, has a password, or has a parameter that does not exist
 */
export function parseClickHouseAddress(text: string): ClickHouseAddress | undefined {
  if (!/^clickhouses?:/i.test(text)) return undefined
  if (!URL.canParse(text)) throw badAddress(EXPECTED)
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') throw userInAddress()
  if (url.protocol !== SCHEME) throw badAddress('For TLS, write clickhouse://host:8443/database?secure.')
  const database = url.pathname.replace(/^\/|\/$/g, '')
  if (url.hostname === '' || url.hash !== '' || !NAME.test(database)) throw badAddress(EXPECTED)
  const { isSecure, cluster, isReplicated } = readParameters(url.searchParams)
  const host = `${url.hostname}:${url.port || (isSecure ? PORT.secure : PORT.plain)}`
  return {
    name: `clickhouse://${host}/${database}`,
    url: `${isSecure ? 'https' : 'http'}://${host}`,
    database,
    cluster,
    isReplicated,
  }
}

const EXPECTED =
  'Expected clickhouse://host:8123/database, with the port of the HTTP interface and a database whose name has letters, digits, _ and -.'

const PARAMETERS = ['secure', 'cluster', 'replicated']

function readParameters(parameters: URLSearchParams): {
  isSecure: boolean
  cluster: string | undefined
  isReplicated: boolean
} {
  const unknown = [...parameters.keys()].some(name => !PARAMETERS.includes(name))
  if (unknown) throw badAddress(`The parameters are ${PARAMETERS.map(name => `?${name}`).join(', ')}.`)
  const cluster = parameters.get('cluster') ?? undefined
  const isReplicated = readSwitch(parameters, 'replicated')
  if (cluster !== undefined && !NAME.test(cluster))
    throw badAddress('The name of a cluster has letters, digits, _ and -.')
  if (isReplicated && cluster === undefined) throw badAddress('?replicated needs &cluster=NAME.')
  return { isSecure: readSwitch(parameters, 'secure'), cluster, isReplicated }
}

const SWITCHES = new Map([
  ['', true],
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
])

/** `?secure`, `?secure=true` and `?secure=1` mean the same, as in other clients. */
function readSwitch(parameters: URLSearchParams, name: string): boolean {
  const value = SWITCHES.get(parameters.get(name) ?? 'false')
  if (value === undefined) throw badAddress(`?${name} is true or false.`)
  return value
}

/** The text is not quoted, since it may contain a password. */
function badAddress(hint: string): StopError {
  return new StopError('The address of the ClickHouse database is not valid', {
    code: 'publish-bad-target',
    hint,
    exitStatus: EXIT_STATUS.usage,
  })
}

function userInAddress(): StopError {
  return new StopError('The address of a ClickHouse database has no user and no password', {
    code: 'publish-bad-target',
    hint: 'Remove them from the address, since other users could see it in the process list. Set publish.clickhouse_user, and name the file with the password by publish.clickhouse_password_file.',
    exitStatus: EXIT_STATUS.usage,
  })
}
