import { writeSync } from 'node:fs'
import pino, { type LevelWithSilent, type Logger } from 'pino'
import { ParleyError } from './errors.ts'
import { safeMultilineText } from './safe-text.ts'

/** The keys of a log line, next to `level`, `time`, `msg` and `error`, with their meaning. */
export const LOG_KEYS = {
  resource: 'name of a resource',
  lane: 'head, retry, items, history or audit',
  fields: 'names of fields, with their tables',
  table: "a table's name",
  route: 'method and path, with placeholders for ids',
  exit_status: 'exit status of the process',
  code: "an error's stable code",
  attempt: 'number of an attempt, from 1',
  requests: 'requests sent',
  throttled: 'responses with status 429',
  pages: 'pages read',
  rows: 'rows read, or rows of a table',
  changed: 'rows written',
  deleted: 'rows marked as deleted',
  pending: 'tasks or items still to do',
  done: 'finished part of the total',
  total: 'the total',
  rate: 'requests per second',
  concurrency: 'requests in flight',
  failures: 'failures in a row',
  wait_ms: 'milliseconds to wait',
  offset_ms: 'milliseconds by which one clock is ahead of the other',
  duration_ms: 'duration in milliseconds',
  bytes: 'size in bytes',
  from: 'an instant',
  to: 'an instant',
  until: 'an instant',
  command: 'a parley command to run',
  path: 'path of a file',
  target: 'where the warehouse is published, without credentials',
  workspace: "a workspace's id",
  base_url: 'address of the API',
  resources: 'names of resources',
  pid: 'process id',
  address: 'address of a server',
  setting: "a setting's key",
  before: "a setting's earlier value, never of a secret",
  after: "a setting's new value, never of a secret",
  problem: "a problem's id, as in a call of a hook",
  version: 'a version',
  outcome: 'how something ended',
  reason: "why; never the API's own text",
  hint: 'what to do',
} as const satisfies Record<string, string>

export type LogFields = {
  readonly [Key in keyof typeof LOG_KEYS]?: string | number | boolean | null | undefined
} & { readonly error?: unknown }

/** The message is a fixed sentence; variable parts are fields. */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

export interface LogOptions {
  level: LevelWithSilent
  /** Writes readable lines instead of JSON. */
  pretty?: boolean
  /** Whether readable lines have colours. */
  colour?: boolean
  /** Where lines go, one at a time and synchronously. Default: standard error. */
  stream?: { write(text: string): unknown } | undefined
}

/** Keys that may hold a secret or private text. Their values are redacted if they are logged by mistake. */
const SECRET_NAMES = [
  'key',
  'apiKey',
  'api_key',
  'x-api-key',
  'X-Api-Key',
  'authorization',
  'Authorization',
  'headers',
  'text',
  'subject',
  'body',
]

/** Writes JSON lines with the level as a word and the time as an instant, or readable lines for a terminal. */
export async function createLog({ level, pretty = false, colour = false, stream }: LogOptions): Promise<Log> {
  const write = stream ? (text: string) => stream.write(text) : writeToStandardError
  const format = pretty ? await loadPrettyFormat(colour) : (line: string) => line
  return adapt(
    pino(
      {
        level,
        base: null,
        timestamp: pino.stdTimeFunctions.isoTime,
        formatters: { level: word => ({ level: word }) },
        serializers: { error: (error: unknown) => describeError(error) },
        redact: {
          paths: SECRET_NAMES.flatMap(name => [`["${name}"]`, `*["${name}"]`]),
          censor: '[redacted]',
        },
      },
      { write: line => void write(format(line)) },
    ),
  )
}

/**
 * Bypasses the stream `process.stderr`, which stops after its first error: a full disk may have space again later. A
 * line that cannot be written is lost, since a failing log must not stop the work.
 */
function writeToStandardError(text: string): void {
  try {
    writeSync(process.stderr.fd, text)
  } catch {
    // There is no other place to report the failed write.
  }
}

/** Loads pino-pretty only for readable lines: loading it takes longer than some commands run. */
async function loadPrettyFormat(colorize: boolean): Promise<(line: string) => string> {
  const { prettyFactory } = await import('pino-pretty')
  const format = prettyFactory({
    colorize,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss',
    errorLikeObjectKeys: [],
  })
  return line => format(safeMultilineText(line))
}

function adapt(logger: Logger): Log {
  const write =
    (level: keyof Log) =>
    (message: string, fields: LogFields = {}) =>
      logger[level](fields, message)
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
  }
}

/**
 * The fields of an error that are logged. The message of a SyntaxError quotes the parsed text, which may be private.
 * Properties of errors from elsewhere may hold anything. Such messages and properties are left out. An error of ours
 * says what its cause means, so the stack of a failed system call behind it is left out too.
 */
function describeError(error: unknown, isCauseOfOurs = false): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error }
  const ours = error instanceof ParleyError
  return {
    type: error.name,
    ...('code' in error && { code: error.code }),
    ...(!(error instanceof SyntaxError) && { message: error.message }),
    ...(ours && error.hint !== undefined && { hint: error.hint }),
    ...(!ours && !(isCauseOfOurs && 'syscall' in error) && { at: stackFrames(error) }),
    ...(error.cause !== undefined && { cause: describeError(error.cause, ours) }),
  }
}

/** The stack without the message that V8 writes before it. */
const stackFrames = (error: Error): string[] =>
  (error.stack ?? '')
    .split('\n')
    .filter(line => /^\s+at /.test(line))
    .map(line => line.trim())
