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
  const [, inMessage] = /^Code: (\d+)[,.]/.exec(error.message) ?? []
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
    codes: [164, 291, 497],
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
    codes: [243],
    fault: words => ({
      code: 'publish-disk-full',
      problem: `The disk of the ClickHouse server at ${words.url} is full`,
      hint: `Free space on the server. ${again(words)}`,
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

function missingDatabase({ database, url, cluster }: DatabaseWords): ServerFault {
  const everywhere = cluster === undefined ? '' : ` ON CLUSTER ${cluster}`
  return {
    code: 'publish-no-database',
    problem: `There is no database ${database} at ${url}`,
    hint: `Create it with CREATE DATABASE ${database}${everywhere}, or check the address.`,
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

export const noDatabase = (words: DatabaseWords): StopError => stopError(missingDatabase(words))

/** Codes of Node and of the client that people can look up; any other text may come from the server. */
const CODE = /^[A-Z][A-Z\d_]+$/

function unreachable(words: DatabaseWords, error: unknown): ServerFault {
  const { url } = words
  const code = errorCode(error)
  const isTimeout = error instanceof Error && error.message === 'Timeout error.'
  if (code === undefined && !isTimeout)
    return {
      code: 'publish-no-clickhouse',
      problem: `The answer of ${url} is not that of a ClickHouse server`,
      hint: 'Check the port: it must be that of the HTTP interface, usually 8123, or 8443 with ?secure.',
    }
  const reason = isTimeout ? 'no answer in time' : code && CODE.test(code) ? code : 'connection failed'
  return {
    code: 'publish-unreachable',
    problem: `The ClickHouse server at ${url} cannot be reached: ${reason}`,
    hint: `Check the address, ?secure and the network of this machine. ${again(words)}`,
  }
}
