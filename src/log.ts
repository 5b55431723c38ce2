import { writeSync } from 'node:fs'
import pino, { type Logger } from 'pino'
import type { Settings } from './config.ts'
import { ParleyError } from './errors.ts'
import { harmlessLines } from './harmless.ts'

/** Every name that a log line may carry beside `level`, `time` and `msg`, with what it holds. One word for one thing. */
export const LOG_KEYS = {
  resource: 'name of a resource',
  lane: 'head, retry, item, history or audit',
  segment: "number of a ledger's segment",
  pass: 'number of a pass',
  run: 'number of a run',
  record: "a record's id",
  object: "a CRM object's name",
  field: "a field's name",
  table: "a table's name",
  route: 'method and path with names in place of ids',
  status: 'HTTP status',
  exit_status: 'exit status of the process',
  code: "an error's stable word",
  attempt: 'number of a try, from 1',
  requests: 'requests sent',
  throttled: 'answers 429',
  pages: 'pages read',
  rows: 'rows read, or rows of a table',
  changed: 'rows written',
  deleted: 'rows tombstoned',
  rejected: 'items that could not be stored',
  pending: 'tasks or items still to do',
  done: 'how much of the whole is done',
  total: 'the whole',
  rate: 'requests per second',
  concurrency: 'requests in flight',
  failures: 'failures in a row',
  wait_ms: 'milliseconds to wait',
  offset_ms: 'by how much one clock is ahead of another',
  duration_ms: 'milliseconds taken',
  bytes: 'size in bytes',
  from: 'an instant',
  to: 'an instant',
  since: 'an instant',
  until: 'an instant',
  command: 'a command of parley that helps',
  path: 'path of a file',
  workspace: "a workspace's id",
  base_url: 'address of the API',
  resources: 'names of resources',
  pid: 'number of a process',
  address: 'where a server listens',
  setting: "a setting's key",
  version: 'a version',
  signal: "a signal's name",
  outcome: 'how something ended',
  reason: 'why, in words of ours',
} as const satisfies Record<string, string>

export type LogFields = {
  readonly [Key in keyof typeof LOG_KEYS]?: string | number | boolean | null | undefined
} & { readonly error?: unknown }

/** The message is a fixed sentence; what varies stands in the fields. */
export interface Log {
  trace(message: string, fields?: LogFields): void
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  fatal(message: string, fields?: LogFields): void
  /** A log whose lines all carry these fields. */
  child(fields: LogFields): Log
}

export interface LogOptions {
  level: Settings['log']['level']
  /** Lines for people instead of JSON. */
  pretty?: boolean
  /** Colours in lines for people. */
  colour?: boolean
  /** Standard error where none is given, which may fail. Written to synchronously, a line at a time. */
  stream?: { write(text: string): unknown }
}

/** Names under which a secret or someone's words would stand, should they ever be handed to the log. */
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

/** JSON lines with the level as a word and the time as an instant, or lines for people on a terminal. */
export async function createLog({ level, pretty = false, colour = false, stream }: LogOptions): Promise<Log> {
  const write = stream ? (text: string) => stream.write(text) : writeToStandardError
  const format = pretty ? await prettyFormat(colour) : (line: string) => line
  return wrap(
    pino(
      {
        level,
        base: null,
        timestamp: pino.stdTimeFunctions.isoTime,
        formatters: { level: word => ({ level: word }) },
        serializers: { error: describeError },
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
 * Past the stream, which writes nothing more after its first error: a full disk may have space again. A line that cannot
 * be written is lost, since nothing may stop for the log.
 */
function writeToStandardError(text: string): void {
  try {
    writeSync(process.stderr.fd, text)
  } catch {
    // There is no other place to say so.
  }
}

/** Loaded only where there is a terminal, since it takes longer to load than many a command takes to run. */
async function prettyFormat(colorize: boolean): Promise<(line: string) => string> {
  const { prettyFactory } = await import('pino-pretty')
  const format = prettyFactory({
    colorize,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss',
    errorLikeObjectKeys: [],
  })
  return line => format(harmlessLines(line))
}

function wrap(logger: Logger): Log {
  const write =
    (level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal') =>
    (message: string, fields: LogFields = {}) =>
      logger[level](fields, message)
  return {
    trace: write('trace'),
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    fatal: write('fatal'),
    child: fields => wrap(logger.child(fields)),
  }
}

/**
 * What a log may know of an error. The text of a SyntaxError quotes what was parsed, which may be anybody's words,
 * and the properties of other people's errors may hold anything, so neither is taken over.
 */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error }
  const ours = error instanceof ParleyError
  return {
    type: error.name,
    ...('code' in error && { code: error.code }),
    ...(!(error instanceof SyntaxError) && { message: error.message }),
    ...(ours && error.hint !== undefined && { hint: error.hint }),
    ...(!ours && { at: framesOf(error) }),
    ...(error.cause !== undefined && { cause: describeError(error.cause) }),
  }
}

/** The stack without the message that V8 puts before it. */
const framesOf = (error: Error): string[] =>
  (error.stack ?? '')
    .split('\n')
    .filter(line => /^\s+at /.test(line))
    .map(line => line.trim())
