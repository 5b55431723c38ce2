import { errorCode } from '../../error-code.ts'
import { EXIT_STATUS, StopError } from '../../errors.ts'

/** Errors of a server and of the way to it, with what to do. They have no text of the server, which may quote rows. */

export interface DatabaseWords {
  /** The address as the user named it. */
  name: string
  /** Of the HTTP interface. */
  url: string
  database: string
  cluster: string | undefined
  /** True: nothing is written, only read. */
  isReadOnly: boolean
}

interface ServerFault {
  code: string
  problem: string
  hint: string
}

/** The error for a statement that failed. */
export function serverError(words: DatabaseWords, error: unknown): StopError {
  return stopError(faultOf(words, error))
}

function stopError({ code, problem, hint }: ServerFault): StopError {
  return new StopError(problem, { code, hint, exitStatus: EXIT_STATUS.databaseUnavailable })
}

function faultOf(words: DatabaseWords, error: unknown): ServerFault {
  const number = serverCode(error)
  if (number === undefined) return unreachable(words, error)
  const known = FAULTS.find(({ codes }) => codes.includes(number))
  const { code, problem, hint } = known?.fault(words) ?? unknownFault(words)
  return { code, problem: `${problem} (ClickHouse error ${number})`, hint }
}

/** The client has a code for messages of newer servers only. */
function serverCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined
  const fromClient = errorCode(error)
  if (fromClient !== undefined && /^\d+$/.test(fromClient)) return Number(fromClient)
  const [, inMessage] = /^(?:\w+::Exception\. )?Code: (\d+)[,.]/i.exec(error.message) ?? []
  return inMessage === undefined ? undefined : Number(inMessage)
}

const again = ({ isReadOnly }: DatabaseWords): string =>
  isReadOnly
    ? 'Run the command again later.'
    : 'Run parley publish again later; it continues from what the server has. Readers still see the last publication.'

/** By the numbers of ClickHouse's errors. */
const FAULTS: readonly { codes: readonly number[]; fault(words: DatabaseWords): ServerFault }[] = [
  {
    codes: [192, 193, 194, 516],
    fault: ({ url }) => ({
      code: 'publish-login',
      problem: `The ClickHouse server at ${url} refuses the user or the password`,
      hint: 'Check publish.clickhouse_user and the file that publish.clickhouse_password_file names.',
    }),
  },
  {
    codes: [81],
    fault: missingDatabase,
  },
  {
    codes: [164],
    fault: ({ database }) => ({
      code: 'publish-read-only',
      problem: `The ClickHouse user may not write the database ${database}: its profile allows only reading`,
      hint: 'Give the user a profile without the setting readonly, or set publish.clickhouse_user to another one.',
    }),
  },
  {
    codes: [291, 497],
    fault: ({ database, isReadOnly }) => ({
      code: 'publish-denied',
      problem: `The ClickHouse user may not ${isReadOnly ? 'read' : 'write'} the database ${database}`,
      hint: `The user needs ${isReadOnly ? 'SELECT' : 'SELECT, INSERT, CREATE, DROP and ALTER'} for ${database}.*, and SELECT for system.tables and system.columns; on a cluster also ${isReadOnly ? 'REMOTE' : 'CLUSTER and REMOTE'}.`,
    }),
  },
  {
    codes: [170, 701],
    fault: ({ cluster, url }) => ({
      code: 'publish-no-cluster',
      problem: `The ClickHouse server at ${url} has no cluster ${cluster}`,
      hint: 'Check the name after ?cluster= against SELECT DISTINCT cluster FROM system.clusters.',
    }),
  },
  {
    codes: [139, 225, 392, 999],
    fault: ({ name }) => ({
      code: 'publish-no-keeper',
      problem: `The cluster of ${name} cannot carry out ON CLUSTER statements`,
      hint: 'They need distributed_ddl and ZooKeeper or ClickHouse Keeper in the settings of every server, and a running Keeper.',
    }),
  },
  {
    codes: [371],
    fault: ({ cluster }) => ({
      code: 'publish-cluster-definition',
      problem: `The definition of the cluster ${cluster} does not fit the tables`,
      hint: 'In remote_servers, internal_replication must be true for an address with &replicated, and false for one without. Correct the one or the other.',
    }),
  },
  {
    codes: [75, 243],
    fault: words => ({
      code: 'publish-disk-full',
      problem: `The ClickHouse server at ${words.url} cannot write its files: its disk may be full`,
      hint: `Free space on the server; its log names the file. ${again(words)}`,
    }),
  },
  {
    codes: [241],
    fault: words => ({
      code: 'publish-memory',
      problem: `The ClickHouse server at ${words.url} has not enough memory for a statement`,
      hint: `Raise max_memory_usage for the user, or give the server more memory. ${again(words)}`,
    }),
  },
  {
    codes: [201, 202],
    fault: words => ({
      code: 'publish-quota',
      problem: `The ClickHouse server at ${words.url} allows the user no further query at present`,
      hint: `Raise the quota of the user or max_concurrent_queries, or publish less often. ${again(words)}`,
    }),
  },
  {
    codes: [252],
    fault: words => ({
      code: 'publish-too-many-parts',
      problem: `The ClickHouse server at ${words.url} has too many parts in a table that it has not merged`,
      hint: `Publish less often, or raise parts_to_throw_insert of the server. ${again(words)}`,
    }),
  },
  {
    codes: [60],
    fault: words => ({
      code: 'publish-no-table',
      problem: `A table in ${words.name} is missing`,
      hint: `Another program may have dropped it. ${again(words)}`,
    }),
  },
  {
    codes: [32, 33, 40, 226, 228, 246, 271, 384],
    fault: words => ({
      code: 'publish-corrupt',
      problem: `The ClickHouse server at ${words.url} cannot read its data, which are damaged`,
      hint: 'The log of the server names the files. Restore them, or drop the table and run parley publish --full.',
    }),
  },
  {
    codes: [159, 160, 209, 210, 279, 242, 285, 286, 319],
    fault: words => ({
      code: 'publish-failing',
      problem: `A statement of ${words.name} did not end in time, or a server of the cluster does not answer`,
      hint: again(words),
    }),
  },
]

const unknownFault = (words: DatabaseWords): ServerFault => ({
  code: 'publish-refused',
  problem: `The ClickHouse server at ${words.url} refuses a statement`,
  hint: `The log of the server has its message. ${again(words)}`,
})

/** A server does not list a database that the user may not read. */
function missingDatabase({ database, url, cluster, isReadOnly }: DatabaseWords): ServerFault {
  const everywhere = cluster === undefined ? '' : ` ON CLUSTER ${cluster}`
  return {
    code: 'publish-no-database',
    problem: `There is no database ${database} at ${url}`,
    hint: isReadOnly
      ? 'Check the address, and that the user may read the database.'
      : `Create it with CREATE DATABASE ${database}${everywhere}, or check the address and that the user may read it.`,
  }
}

/** @param end the last bytes of an answer that ended with the text of an error, or was cut */
export function brokenAnswer(words: DatabaseWords, end: Buffer): StopError {
  const [text] = /Code: \d+[,.]/.exec(end.toString('latin1')) ?? []
  if (text !== undefined) return serverError(words, new Error(text))
  return stopError({
    code: 'publish-broken-answer',
    problem: `An answer of the ClickHouse server at ${words.url} ended early`,
    hint: `The log of the server may say why. ${again(words)}`,
  })
}

/** The server at the address answers, but not as ClickHouse does. */
export const noClickHouse = ({ url }: DatabaseWords): StopError => stopError(otherProgram(url))

export const noDatabase = (words: DatabaseWords): StopError => stopError(missingDatabase(words))

/** Codes of Node and of the client that people can look up; any other text may come from the server. */
const CODE = /^[A-Z][A-Z\d_]+$/

/** What the codes of a connection that failed mean; the first that matches. */
const CONNECTION_FAULTS: readonly {
  codes: RegExp
  fault(words: DatabaseWords, code: string): ServerFault
}[] = [
  {
    codes: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    fault: ({ url }, code) => ({
      code: 'publish-certificate',
      problem: `The certificate of the ClickHouse server at ${url} is for another host: ${code}`,
      hint: 'Use the host name that is in the certificate as the address.',
    }),
  },
  {
    codes: /^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|INVALID_CA)/,
    fault: ({ url }, code) => ({
      code: 'publish-certificate',
      problem: `The certificate of the ClickHouse server at ${url} is not trusted: ${code}`,
      hint: 'If your own authority signed it, set the environment variable NODE_EXTRA_CA_CERTS to the PEM file of that authority, also for the daemon. If it has expired, renew it on the server.',
    }),
  },
  {
    codes: /^(EPROTO|ERR_SSL)/,
    fault: ({ url }, code) => ({
      code: 'publish-tls',
      problem: `The server at ${url} does not answer with TLS: ${code}`,
      hint: 'Name the port of https_port, usually 8443, or remove ?secure from the address: then the password is sent unencrypted.',
    }),
  },
]

function unreachable(words: DatabaseWords, error: unknown): ServerFault {
  const { url } = words
  const code = errorCode(error)
  const isTimeout = error instanceof Error && error.message === 'Timeout error.'
  if (code === undefined && !isTimeout) return otherProgram(url)
  const known = CONNECTION_FAULTS.find(({ codes }) => codes.test(code ?? ''))
  if (known && code !== undefined) return known.fault(words, code)
  const reason = isTimeout ? 'no answer in time' : code && CODE.test(code) ? code : 'connection failed'
  return {
    code: 'publish-unreachable',
    problem: `The ClickHouse server at ${url} cannot be reached: ${reason}`,
    hint: `Check the address, that the server runs, and the network of this machine; a port for TLS needs ?secure. ${again(words)}`,
  }
}

const otherProgram = (url: string): ServerFault => ({
  code: 'publish-no-clickhouse',
  problem: `The answer of ${url} is not that of a ClickHouse server`,
  hint: 'Check the port: it must be that of the HTTP interface, usually 8123, or 8443 with ?secure. A proxy in between may have answered instead of the server.',
})
