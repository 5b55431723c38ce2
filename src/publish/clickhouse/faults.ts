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

const AGAIN =
  'Run parley publish again later; it continues from what is there. Readers still see the last publication.'

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
    fault: ({ database }) => ({
      code: 'publish-denied',
      problem: `The ClickHouse user may not write the database ${database}`,
      hint: `The user needs SELECT, INSERT, CREATE, DROP and ALTER for ${database}.*, and SELECT for system.tables and system.columns; on a cluster also CLUSTER and REMOTE.`,
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
    codes: [243],
    fault: ({ url }) => ({
      code: 'publish-disk-full',
      problem: `The disk of the ClickHouse server at ${url} is full`,
      hint: `Free space on the server. ${AGAIN}`,
    }),
  },
  {
    codes: [241],
    fault: ({ url }) => ({
      code: 'publish-memory',
      problem: `The ClickHouse server at ${url} has not enough memory for a statement`,
      hint: `Raise max_memory_usage for the user, or give the server more memory. ${AGAIN}`,
    }),
  },
  {
    codes: [159, 160, 209, 210, 279, 242, 319],
    fault: ({ name }) => ({
      code: 'publish-failing',
      problem: `A statement of ${name} did not end in time, or a server of the cluster does not answer`,
      hint: AGAIN,
    }),
  },
]

const unknownFault = ({ url }: DatabaseWords): ServerFault => ({
  code: 'publish-refused',
  problem: `The ClickHouse server at ${url} refuses a statement`,
  hint: `The log of the server has its message. ${AGAIN}`,
})

function missingDatabase({ database, url, cluster }: DatabaseWords): ServerFault {
  const everywhere = cluster === undefined ? '' : ` ON CLUSTER ${cluster}`
  return {
    code: 'publish-no-database',
    problem: `There is no database ${database} at ${url}`,
    hint: `Create it with CREATE DATABASE ${database}${everywhere}, or check the address.`,
  }
}

export const noDatabase = (words: DatabaseWords): StopError => stopError(missingDatabase(words))

/** Codes of Node and of the client that people can look up; any other text may come from the server. */
const CODE = /^[A-Z][A-Z\d_]+$/

function unreachable({ url }: DatabaseWords, error: unknown): ServerFault {
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
    hint: `Check the address, ?secure and the network of this machine. ${AGAIN}`,
  }
}
