import type { Kind } from './config-kinds.ts'
import * as kinds from './config-kinds.ts'

/** One setting: all that is known of it, for reading it and for explaining it. */
export interface Setting {
  kind: Kind<unknown>
  /** As a settings file would give it; undefined where there is none. */
  default: string | number | boolean | undefined
  /** What stands for the default in documents when there is none. */
  without?: string
  unit?: string
  description: string
  /** The name in the environment where it is not `PARLEY_SECTION_KEY`. */
  environment?: string
  flag: string
  /** What the flag's value is called in help. */
  placeholder: string
  /** As TOML. */
  example: string
  /**
   * What the value is called, for one that is never shown: it comes from the settings file, from the environment, or
   * from a file that the flag, the environment (`…_FILE`) or systemd names.
   */
  secret?: string
}

/** The sections in the order of the documents, each with what it is about. */
export const SECTIONS = {
  api: 'The API that is read.',
  database: 'The warehouse.',
  sync: 'What is read and how often.',
  access_log: 'The log of API requests that the API itself keeps.',
  transcripts: 'Transcripts of meetings.',
  crm: 'Records of the CRM.',
  search: 'Full-text search.',
  http: 'The status server of `parley daemon`.',
  retention: 'How long things are kept.',
  snapshot:
    'Snapshots that the daemon makes: whole copies of the warehouse, each a file that opens anywhere.',
  log: 'The log on standard error.',
} as const

/** Every setting there is. Reading, flags, environment names, the documents and `parley init` all follow from it. */
export const SETTINGS = {
  'api.base_url': {
    kind: kinds.baseUrl,
    default: undefined,
    without: 'required',
    description: 'The address under which `/v1` and `/v2` of the API are found.',
    environment: 'PARLEY_BASE_URL',
    flag: '--base-url',
    placeholder: 'url',
    example: '"https://api.example.com"',
  },
  'api.key': {
    kind: kinds.text('a key of printable ASCII characters without spaces', /^[\x21-\x7e]+$/),
    default: undefined,
    without: 'required',
    description:
      'The API key. Keep it in a file that only the service can read: `key_file` names that file, and a relative path starts at the folder of the settings file. `PARLEY_API_KEY_FILE`, `--api-key-file` and the systemd credential `api_key` name one as well; `key` takes the key itself. It is never printed, logged or stored, and no flag takes the key itself, since other users could see it in the list of processes.',
    environment: 'PARLEY_API_KEY',
    flag: '--api-key-file',
    placeholder: 'file',
    example: '"parley.key"',
    secret: 'the API key',
  },
  'api.workspace_id': {
    kind: kinds.text('an id of printable ASCII characters without spaces', /^[\x21-\x7e]+$/),
    default: undefined,
    without: 'required',
    description: 'The id of the workspace to read, the one that the key belongs to.',
    environment: 'PARLEY_WORKSPACE_ID',
    flag: '--workspace-id',
    placeholder: 'id',
    example: '"0b0e7d9e-5f6c-4c0e-9d55-1f1d6f3f8c11"',
  },
  'api.max_requests_per_second': {
    kind: kinds.number({ min: 0.01, max: 1000 }),
    default: undefined,
    without: 'none',
    unit: 'requests per second',
    description:
      'A ceiling of yours that is never exceeded. Without one, parley learns from the answers what the API allows.',
    flag: '--max-requests-per-second',
    placeholder: 'number',
    example: '5',
  },
  'api.max_concurrency': {
    kind: kinds.number({ whole: true, min: 1, max: 1000 }),
    default: undefined,
    without: 'none',
    unit: 'requests at the same time',
    description: 'A ceiling of yours for requests in flight together.',
    flag: '--max-concurrency',
    placeholder: 'number',
    example: '4',
  },
  'api.max_requests_per_day': {
    kind: kinds.number({ whole: true, min: 1, max: 1_000_000_000 }),
    default: undefined,
    without: 'none',
    unit: 'requests per day',
    description:
      'A ceiling of yours for a day. When it is reached, requests wait; `doctor` and `backfill --plan` end instead. Their own requests, 60 at most, are not counted afterwards.',
    flag: '--max-requests-per-day',
    placeholder: 'number',
    example: '50000',
  },
  'api.max_response_bytes': {
    kind: kinds.size('1KiB', '500MiB'),
    default: '32MiB',
    unit: 'bytes',
    description:
      'The longest answer that is accepted, counted after decompression. A longer one is cut off while it streams: that request fails and the rest goes on.',
    flag: '--max-response-bytes',
    placeholder: 'size',
    example: '"64MiB"',
  },
  'api.timeout_seconds': {
    kind: kinds.number({ above: 0, max: 3600 }),
    default: 60,
    unit: 'seconds',
    description:
      'How long a whole request may take. Connecting and the wait for headers have shorter limits of their own.',
    flag: '--timeout-seconds',
    placeholder: 'seconds',
    example: '90',
  },
  'api.give_up_seconds': {
    kind: kinds.number({ above: 0, max: 604_800 }),
    default: 120,
    unit: 'seconds',
    description:
      'A backfill that gets no answer from the API for so long ends with status 69. When the very first request cannot even connect, it ends after 10 seconds; when the first answers show that another site is at api.base_url, it ends at once.',
    flag: '--give-up-seconds',
    placeholder: 'seconds',
    example: '600',
  },
  'database.path': {
    kind: kinds.path,
    default: 'parley.db',
    description: 'The SQLite file. A relative path starts at the working directory.',
    environment: 'PARLEY_DATABASE',
    flag: '--database',
    placeholder: 'file',
    example: '"/var/lib/parley/parley.db"',
  },
  'database.mode': {
    kind: kinds.fileMode,
    default: '0600',
    unit: 'octal file mode',
    description:
      'The mode of the SQLite file, its `-wal`, its `-shm` and its `-lock`. A backfill and the daemon give it to existing files too. With "0640" the group can read.',
    flag: '--database-mode',
    placeholder: 'mode',
    example: '"0640"',
  },
  'sync.poll_seconds': {
    kind: kinds.number({ min: 1, max: 604_800 }),
    default: 60,
    unit: 'seconds',
    description: 'How often the daemon reads the newest end of activities and messages.',
    flag: '--poll-seconds',
    placeholder: 'seconds',
    example: '30',
  },
  'sync.interval_scale': {
    kind: kinds.number({ above: 0, max: 100 }),
    default: 1,
    description:
      'Multiplies every interval and deadline of audits, snapshots, re-reads, readiness and unavailable resources. None gets shorter than a second; polls, retries, timeouts, calendar work and retention stay as they are. 0.001 makes days into minutes, for trials and tests.',
    flag: '--interval-scale',
    placeholder: 'number',
    example: '0.001',
  },
  'sync.since': {
    kind: kinds.instant,
    default: undefined,
    without: 'everything',
    unit: 'UTC day or RFC 3339 instant',
    description:
      'Leaves out activities, messages and access log entries from before this day or instant, and details of meetings known to have started before it. A later run without it loads the rest.',
    flag: '--since',
    placeholder: 'day',
    example: '2025-01-01',
  },
  'sync.resources': {
    kind: kinds.resourceList,
    default: undefined,
    without: 'all',
    description:
      'The resources to read. The parents that they need are added. In the environment and after the flag, the names are separated by commas.',
    flag: '--only',
    placeholder: 'names',
    example: '["activities", "messages"]',
  },
  'access_log.end_parameter': {
    kind: kinds.text('the name of a query parameter', /^[A-Za-z][\w.-]{0,63}$/),
    default: 'to',
    description:
      "The name of the query parameter for a period's end, which the API's description does not give.",
    flag: '--access-log-end-parameter',
    placeholder: 'name',
    example: '"until"',
  },
  'transcripts.words': {
    kind: kinds.boolean,
    default: true,
    description: 'Keeps the time of every single word of a transcript.',
    flag: '--transcript-words',
    placeholder: 'true|false',
    example: 'false',
  },
  'crm.tables': {
    kind: kinds.boolean,
    default: true,
    description:
      'Keeps a table with typed columns for each object of the CRM, such as `crm_deal`, beside the JSON of `crm_records`. Without it those that are there are dropped at the next start.',
    flag: '--crm-tables',
    placeholder: 'true|false',
    example: 'false',
  },
  'search.enabled': {
    kind: kinds.boolean,
    default: true,
    description:
      'Keeps the full-text indices of `parley search`. They are made at the end of a backfill, or by the daemon beside its reading. Without them texts are looked through one by one; those that are there are dropped at the next start.',
    flag: '--search',
    placeholder: 'true|false',
    example: 'false',
  },
  'http.listen': {
    kind: kinds.listen,
    default: '127.0.0.1:8787',
    description:
      'Where the status server listens: address and port, `unix:PATH`, or `off`. A port that is taken is a warning, and the sync goes on.',
    flag: '--listen',
    placeholder: 'address',
    example: '"unix:/run/parley/acme.sock"',
  },
  'http.nudge_secret': {
    kind: kinds.text(
      'a secret of at least 16 and at most 200 printable ASCII characters without spaces',
      /^[\x21-\x7e]{16,200}$/,
    ),
    default: undefined,
    without: 'none',
    description:
      "What the product's webhooks must give so that they are heard: in the header `X-Nudge-Secret` of `POST /nudge`, or, where a webhook has no headers of its own, percent-encoded at the end of `POST /nudge/SECRET`. What they say is never taken for data, only as a hint at what to read soon. Without a secret there is no `/nudge`. A reverse proxy that brings webhooks in from outside should pass on nothing else, keep their path out of its log, and ask for the host `localhost`, `127.0.0.1` or `[::1]`, since on loopback no other is answered. `nudge_secret_file` names the file that holds it, as with the API key. It is never printed, logged or stored.",
    flag: '--nudge-secret-file',
    placeholder: 'file',
    example: '"nudge.secret"',
    secret: 'the nudge secret',
  },
  'retention.withdrawn_days': {
    kind: kinds.orWord(kinds.number({ whole: true, min: 0, max: 36_500 }), 'never'),
    default: 30,
    unit: 'days',
    description:
      'When the content of what was withdrawn from the API is erased; "never" keeps it. The daemon erases each night, and makes up for a night that was missed; a backfill erases at its end, once a day. Nothing is erased, and no copy removed, until the API has told the time and the clock of this machine is within a day of it. Snapshots that parley keeps, and databases that a restore has kept, go when they are as old as that: so what is withdrawn is gone from all of them after twice these days at the latest.',
    flag: '--withdrawn-days',
    placeholder: 'days',
    example: '"never"',
  },
  'retention.runs_days': {
    kind: kinds.number({ whole: true, min: 1, max: 36_500 }),
    default: 90,
    unit: 'days',
    description: 'How long the history of runs is kept.',
    flag: '--runs-days',
    placeholder: 'days',
    example: '30',
  },
  'snapshot.every': {
    kind: kinds.calendar,
    default: undefined,
    without: 'none is made',
    description:
      "When the daemon makes a snapshot, by this machine's time zone: at minute 7 of each hour, at 03:47 each day, at 03:47 on Sundays, or as the pattern says. Where there is none yet, the first is made at once; one that was missed since the newest, because nothing ran, is made once at the start. One that fails is a warning, and the next comes as planned. `parley snapshot` makes one at any time.",
    flag: '--snapshot-every',
    placeholder: 'when',
    example: '"daily"',
  },
  'snapshot.keep': {
    kind: kinds.number({ whole: true, min: 1, max: 10_000 }),
    default: 7,
    unit: 'snapshots',
    description:
      'How many of the newest snapshots of this warehouse are kept. One that is older than `retention.withdrawn_days` goes before that, since it still has what was erased since; the last one only where something was erased since.',
    flag: '--snapshot-keep',
    placeholder: 'number',
    example: '14',
  },
  'snapshot.folder': {
    kind: kinds.folder,
    default: undefined,
    without: 'beside the database, its name with `.snapshots`',
    description:
      'Where snapshots are kept: a folder for each warehouse. It is made where it is missing. Only snapshots of the same warehouse are ever removed from it. Each needs about as much space as the database; on another disk they outlive this one.',
    flag: '--snapshot-folder',
    placeholder: 'folder',
    example: '"/srv/snapshots/acme"',
  },
  'log.level': {
    kind: kinds.oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    default: 'info',
    description: 'The least important level that is written.',
    flag: '--log-level',
    placeholder: 'level',
    example: '"debug"',
  },
} as const satisfies Record<`${keyof typeof SECTIONS}.${string}`, Setting>

export type SettingKey = keyof typeof SETTINGS

/** The table with every setting seen the same way, in its order. */
export const SETTING_LIST: readonly (readonly [SettingKey, Setting])[] = Object.entries(SETTINGS).map(
  ([key, setting]) => [key as SettingKey, setting],
)

export const settingOf = (key: SettingKey): Setting => SETTINGS[key]

/** `api.max_concurrency` is `PARLEY_API_MAX_CONCURRENCY`, but for those with a name of their own. */
export function environmentName(key: SettingKey): string {
  return settingOf(key).environment ?? `PARLEY_${key.replace('.', '_').toUpperCase()}`
}

/** Where the environment names a file that holds the value of a secret setting. */
/** The key under which a settings file names the file with a secret; a relative path starts at the settings file. */
export function fileKey(key: SettingKey): string {
  return `${key}_file`
}

export function fileEnvironmentName(key: SettingKey): string {
  return `${environmentName(key)}_FILE`
}

/** The name of a secret setting among the systemd credentials of the service. */
export function credentialName(key: SettingKey): string {
  return key.replace('.', '_')
}

/** The settings whose value is never shown, with what it is called. */
export const SECRETS: readonly (readonly [SettingKey, string])[] = SETTING_LIST.flatMap(
  ([key, { secret }]) => (secret === undefined ? [] : [[key, secret] as const]),
)
