import type { SettingKind } from './kinds.ts'
import * as kinds from './kinds.ts'
import { REPORTING_SECTIONS, REPORTING_SETTINGS } from './reporting-settings.ts'

/** Everything about one setting: how to read it and how to explain it. */
export interface Setting {
  kind: SettingKind<unknown>
  /** The value as in a settings file. */
  default?: string | number | boolean
  /** Shown in documents where there is no default. By default `none`. */
  without?: string
  unit?: string
  description: string
  /** The environment variable, when it is not `PARLEY_<SECTION>_<KEY>`. */
  environment?: string
  /** The flag. Settings that describe the workspace have none. */
  flag?: string
  /** The name of the flag's value in the help. By default `file` for a secret, else `true|false`. */
  placeholder?: string
  /** An example value, as TOML. */
  example: string
  /**
   * Only for a secret: the name of its value in messages. The value is never shown. It comes from the settings file or
   * the environment, or from a file that the flag, the environment (`…_FILE`), the settings file (`…_file`) or systemd
   * names.
   */
  secret?: string
}

/** The sections with their descriptions, in the order of the settings reference and the example file. */
export const SECTIONS = {
  api: 'The API to read.',
  database: 'The warehouse.',
  sync: 'What to read, and how often.',
  access_log: 'The log of API requests that the API itself keeps.',
  transcripts: 'Transcripts of meetings.',
  crm: 'Records of the CRM.',
  ...REPORTING_SECTIONS,
  search: 'Full-text search.',
  http: 'The status server of `parley daemon`.',
  hooks: 'Who is called when `parley daemon` has a problem.',
  retention: 'How long to keep deleted content and run history.',
  snapshot:
    'Snapshots that the daemon takes: complete copies of the warehouse, each one self-contained file.',
  publish:
    'Publications: the warehouse as Apache Iceberg tables in a folder or in S3, kept up to date by the daemon or by `parley publish`.',
  log: 'The log on standard error.',
} as const

const accessSecret = (what: string) =>
  kinds.text(
    `a ${what} of at least 16 and at most 200 printable ASCII characters without spaces`,
    /^[\x21-\x7e]{16,200}$/,
  )

/**
 * All settings. The flags, environment variables, documents and `parley init` are derived from this table;
 * config/README.md says how to generate the documents again.
 */
export const SETTINGS = {
  'api.base_url': {
    kind: kinds.baseUrl,
    without: 'required',
    description: 'The address of the API, without `/v1` and `/v2`.',
    environment: 'PARLEY_BASE_URL',
    flag: '--base-url',
    placeholder: 'url',
    example: '"https://api.example.com"',
  },
  'api.key': {
    kind: kinds.text('a key of printable ASCII characters without spaces', /^[\x21-\x7e]+$/),
    without: 'required',
    description:
      'The API key. `key_file` names the file that contains it; only the service should be able to read that file. A relative path starts at the folder of the settings file. `--api-key-file`, `PARLEY_API_KEY_FILE` and the systemd credential `api_key` name a file as well; `key` and `PARLEY_API_KEY` contain the key itself. parley never prints, logs or stores the key.',
    environment: 'PARLEY_API_KEY',
    flag: '--api-key-file',
    example: '"parley.key"',
    secret: 'the API key',
  },
  'api.workspace_id': {
    kind: kinds.text('an id of printable ASCII characters without spaces', /^[\x21-\x7e]+$/),
    without: 'required',
    description: 'The id of the workspace to read. The API key must belong to it.',
    environment: 'PARLEY_WORKSPACE_ID',
    flag: '--workspace-id',
    placeholder: 'id',
    example: '"0b0e7d9e-5f6c-4c0e-9d55-1f1d6f3f8c11"',
  },
  'api.proxy': {
    kind: kinds.proxy,
    without: 'that of `HTTPS_PROXY` or `HTTP_PROXY`, if set',
    description:
      'The proxy for requests to the API, to a bucket and to webhooks; "none" uses no proxy at all. Hosts of `NO_PROXY`, and loopback, are always reached directly. The proxy must allow `CONNECT` to their ports. Since its address may contain a password, `proxy_file` names a file that contains it, as for the API key; `proxy` contains the address itself. A certificate that a company adds is trusted when `NODE_EXTRA_CA_CERTS` names its file.',
    flag: '--proxy-file',
    example: '"proxy.url"',
    secret: 'the address of the proxy',
  },
  'api.max_requests_per_second': {
    kind: kinds.number({ min: 0.01, max: 1000 }),
    unit: 'requests per second',
    description:
      'An upper limit that is never exceeded. Without it, parley finds the limit of the API by itself.',
    flag: '--max-requests-per-second',
    placeholder: 'number',
    example: '5',
  },
  'api.max_concurrency': {
    kind: kinds.number({ whole: true, min: 1, max: 1000 }),
    unit: 'requests at the same time',
    description: 'An upper limit for requests in flight at the same time.',
    flag: '--max-concurrency',
    placeholder: 'number',
    example: '4',
  },
  'api.max_requests_per_day': {
    kind: kinds.number({ whole: true, min: 1, max: 1_000_000_000 }),
    unit: 'requests per day',
    description:
      'An upper limit for requests in a UTC day. When it is reached, requests wait; `doctor` and `backfill --plan` end instead. The requests of these two commands, 60 at most, are not counted for later runs.',
    flag: '--max-requests-per-day',
    placeholder: 'number',
    example: '50000',
  },
  'api.max_response_bytes': {
    kind: kinds.size('1KiB', '500MiB'),
    default: '32MiB',
    unit: 'bytes',
    description:
      'The maximum size of a response after decompression. A larger response is cut off while it streams: its request fails, other requests continue.',
    flag: '--max-response-bytes',
    placeholder: 'size',
    example: '"64MiB"',
  },
  'api.timeout_seconds': {
    kind: kinds.number({ above: 0, max: 3600 }),
    default: 60,
    unit: 'seconds',
    description:
      'The maximum time for a whole request. Connecting and waiting for the response headers have shorter, fixed limits.',
    flag: '--timeout-seconds',
    placeholder: 'seconds',
    example: '90',
  },
  'api.give_up_seconds': {
    kind: kinds.number({ above: 0, max: 604_800 }),
    default: 120,
    unit: 'seconds',
    description:
      'A backfill that gets no response from the API for this time ends with status 69. While the API answers other requests, a request without an answer fails only its resource. If the first request cannot connect, it ends after 10 seconds. If the first responses show that another site is at api.base_url, it ends at once.',
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
      'The mode of the SQLite file and of its `-wal` and `-shm` files; only users who may write it can use its `-lock` file. A backfill and the daemon also apply it to existing files. With "0640" the group can read.',
    flag: '--database-mode',
    placeholder: 'mode',
    example: '"0640"',
  },
  'sync.poll_seconds': {
    kind: kinds.number({ min: 1, max: 604_800 }),
    default: 60,
    unit: 'seconds',
    description: 'How often the daemon reads the newest activities and messages.',
    flag: '--poll-seconds',
    placeholder: 'seconds',
    example: '30',
  },
  'sync.interval_scale': {
    kind: kinds.number({ above: 0, max: 100 }),
    default: 1,
    description:
      'Multiplies how long parley waits before it reads lists and items again, looks at unavailable resources again, and confirms deletions, also those that the mass-deletion guard holds back. The result is at least one second. Polls, retries, timeouts, scheduled work such as snapshots and publications, and retention are not affected. Reads of single items that are already planned keep their time. 0.001 turns days into minutes, for trials and tests.',
    flag: '--interval-scale',
    placeholder: 'number',
    example: '0.001',
  },
  'sync.since': {
    kind: kinds.instant,
    without: 'everything',
    unit: 'UTC day or RFC 3339 instant',
    description:
      'Reads no activities, messages and access log entries from before this day or instant, and no details of meetings that started before it. A later run without this setting loads the rest.',
    flag: '--since',
    placeholder: 'day',
    example: '2025-01-01',
  },
  'sync.resources': {
    kind: kinds.resourceList,
    without: 'all',
    description:
      'The resources to read. The parents that they need are added. In the environment and with the flag, separate the names with commas.',
    flag: '--only',
    placeholder: 'names',
    example: '["activities", "messages"]',
  },
  'access_log.end_parameter': {
    kind: kinds.text('the name of a query parameter', /^[A-Za-z][\w.-]{0,63}$/),
    default: 'to',
    description:
      "The name of the query parameter for the end of a period. The API's description does not state it. If the name is wrong, the resource `access_logs` is `failing` and its reason names this setting.",
    flag: '--access-log-end-parameter',
    placeholder: 'name',
    example: '"until"',
  },
  'transcripts.words': {
    kind: kinds.boolean,
    default: true,
    description: 'Stores the start and end time of each word of a transcript.',
    flag: '--transcript-words',
    example: 'false',
  },
  'crm.tables': {
    kind: kinds.boolean,
    default: true,
    description:
      'Maintains a table with typed columns for each CRM object, such as `crm_deal`, in addition to the JSON in `crm_records`. When it is false, existing typed tables are dropped at the next start.',
    flag: '--crm-tables',
    example: 'false',
  },
  ...REPORTING_SETTINGS,
  'search.enabled': {
    kind: kinds.boolean,
    default: true,
    description:
      'Maintains the full-text indices of `parley search`. A backfill builds them at its end, the daemon while it reads. When it is false, a search scans all texts, and existing indices are dropped at the next start.',
    flag: '--search',
    example: 'false',
  },
  'http.listen': {
    kind: kinds.listen,
    default: '127.0.0.1:8787',
    description:
      'The address of the status server: address and port, `unix:PATH`, or `off`. Beyond loopback the server listens only if `http.token` is set. If the port is in use, the daemon logs a warning and runs without the server.',
    flag: '--listen',
    placeholder: 'address',
    example: '"unix:/run/parley/acme.sock"',
  },
  'http.token': {
    kind: accessSecret('token'),
    description:
      'The token that the status server asks for on a TCP address: as `Authorization: Bearer TOKEN`, or as the password in a browser, with any user name. `/livez` and `/readyz` need none, webhooks need `http.nudge_secret` instead, and the catalogue `http.catalogue_token`. A Unix socket asks for no token: its permissions decide. Without a token, the server listens on loopback only. `token_file` names the file that contains the token, as for the API key. Beyond loopback, use a reverse proxy with TLS, since the token is sent as it is.',
    flag: '--http-token-file',
    example: '"http.token"',
    secret: 'the token of the status server',
  },
  'http.report': {
    kind: kinds.boolean,
    default: false,
    description:
      'Serves the report of `parley report` at the path `/report`. The report has names of deals and people, unlike the page. So it needs `http.token`, which `/report` asks for on a Unix socket too. A separate thread makes the report when somebody asks for it, at most every few seconds.',
    flag: '--http-report',
    example: 'true',
  },
  'http.catalogue_token': {
    kind: accessSecret('token'),
    without: 'no catalogue',
    description:
      'The token of the catalogue: with it and `publish.target`, the status server of the daemon is also a read-only Iceberg REST catalogue of the published tables, at the path `/iceberg`. Spark, Trino, DuckDB, pyiceberg and ClickHouse send the token as `Authorization: Bearer TOKEN`, also to a Unix socket. It opens nothing but the catalogue, and `http.token` does not open the catalogue. drizzle/engines.md says how each engine connects. `catalogue_token_file` names the file that contains the token, as for the API key.',
    flag: '--catalogue-token-file',
    example: '"catalogue.token"',
    secret: 'the token of the catalogue',
  },
  'http.nudge_secret': {
    kind: accessSecret('secret'),
    description:
      'The secret that webhooks of the product must send: in the header `X-Nudge-Secret` of `POST /nudge`, or, for webhooks without custom headers, percent-encoded at the end of `POST /nudge/SECRET`. A webhook is only a hint at what to read soon; its content is never stored. A body that is not JSON is refused (400, or 415 for another type). Without a secret there is no `/nudge`. A reverse proxy for webhooks should forward no other path, keep this path out of its log, and send the host `localhost`, `127.0.0.1` or `[::1]`, since the server on loopback accepts no other host. `nudge_secret_file` names the file that contains the secret, as for the API key. The secret is never printed, logged or stored.',
    flag: '--nudge-secret-file',
    example: '"nudge.secret"',
    secret: 'the nudge secret',
  },
  'hooks.on_problem': {
    kind: kinds.hook,
    description:
      'What the daemon calls for each problem that lasts: a command for `/bin/sh`, or the address of a webhook. A problem that needs a person is announced when it is seen in two looks in a row, 15 seconds apart, and again after each day that it lasts. A problem that parley waited out is announced again when it needs a person. A restart does not announce a problem again. systemd/README.md has the fields of a call. A call that fails is repeated up to four times in about 15 minutes. `on_problem_file` names the file that contains the command or the address, as for the API key. The value is never printed, logged or stored.',
    flag: '--on-problem-file',
    example: '"on-problem.hook"',
    secret: 'the problem hook',
  },
  'hooks.on_recovered': {
    kind: kinds.hook,
    description:
      'What the daemon calls once when a problem that it announced is gone in two looks in a row, with the same fields and how long the problem lasted. The value is given as that of `hooks.on_problem`.',
    flag: '--on-recovered-file',
    example: '"on-recovered.hook"',
    secret: 'the recovery hook',
  },
  'hooks.wait_minutes': {
    kind: kinds.number({ min: 0, max: 10_080 }),
    default: 15,
    unit: 'minutes',
    description:
      'How long a problem that parley waits out by itself, such as an API that is down, lasts before it is announced.',
    flag: '--hook-wait-minutes',
    placeholder: 'minutes',
    example: '60',
  },
  'retention.withdrawn_days': {
    kind: kinds.orWord(kinds.number({ whole: true, min: 0, max: 36_500 }), 'never'),
    default: 30,
    unit: 'days',
    description:
      'After how many days the content of deleted rows is purged; "never" keeps it. The daemon purges each night and makes up for a missed night. A backfill purges at its end, once a day. Nothing is purged and no copy is removed until the API has sent its time and the clock of this machine is within a day of it. Kept snapshots, and databases that a restore has kept, are removed at the same age. So deleted content is gone from all copies after twice this time at the latest.',
    flag: '--withdrawn-days',
    placeholder: 'days',
    example: '"never"',
  },
  'retention.runs_days': {
    kind: kinds.number({ whole: true, min: 1, max: 36_500 }),
    default: 90,
    unit: 'days',
    description: 'How long run history is kept.',
    flag: '--runs-days',
    placeholder: 'days',
    example: '30',
  },
  'snapshot.every': {
    kind: kinds.calendar,
    without: 'no snapshots',
    description:
      "When the daemon takes a snapshot, in this machine's time zone: hourly at minute 7, daily at 03:47, weekly at 03:47 on Sundays, or by the cron pattern. The first snapshot is taken at once. A snapshot that was missed while the daemon did not run is taken once at its start. A snapshot waits up to an hour for due maintenance, so that it does not contain what maintenance purges. A failed snapshot is a warning; the next one is taken as planned. `parley snapshot` takes one at any time.",
    flag: '--snapshot-every',
    placeholder: 'when',
    example: '"daily"',
  },
  'snapshot.keep': {
    kind: kinds.number({ whole: true, min: 1, max: 10_000 }),
    default: 7,
    unit: 'snapshots',
    description:
      'How many of the newest snapshots of this warehouse are kept. After a purge, the snapshots from before it are removed as soon as there is a newer one, since they still contain the purged content. A snapshot older than `retention.withdrawn_days` is removed too; the last one only if something was purged since.',
    flag: '--snapshot-keep',
    placeholder: 'number',
    example: '14',
  },
  'snapshot.folder': {
    kind: kinds.folder,
    without: 'next to the database, its name with `.snapshots`',
    description:
      'The folder for snapshots, one for each warehouse. A relative path starts at the working directory. It is created if it is missing. Only snapshots of the same warehouse are removed from it. Each snapshot needs about as much space as the database. Use another disk to survive a disk failure.',
    flag: '--snapshot-folder',
    placeholder: 'folder',
    example: '"/srv/snapshots/acme"',
  },
  'publish.target': {
    kind: kinds.publishTarget,
    without: 'no publications by the daemon',
    description:
      'Where the daemon publishes the warehouse: a folder or `s3://bucket/prefix`. A relative path starts at the working directory. It is new, empty, or has earlier publications of this warehouse. `parley publish` without a target publishes there too. A target that is down, slow or full never delays the sync: the daemon logs a warning, and tries again after 30 seconds and then after growing waits, at most as long as `publish.every` and an hour.',
    flag: '--publish-target',
    placeholder: 'target',
    example: '"s3://bucket/lake"',
  },
  'publish.every': {
    kind: kinds.orWord(kinds.recurrence, 'never'),
    default: '5m',
    description:
      'How often the daemon publishes: an interval between the starts of two publications, such as "5m", or the calendar as in `snapshot.every`. The first publication, and one that was missed, is made at once. Only changes are written. "never": the daemon does not publish, and `publish.target` is for `parley publish` alone.',
    flag: '--publish-every',
    placeholder: 'when',
    example: '"15m"',
  },
  'publish.keep': {
    kind: kinds.number({ whole: true, min: 1, max: 1000 }),
    default: 5,
    unit: 'publications',
    description:
      'How many publications of each table stay readable. Publications that hold content which was purged later go at the next publication.',
    flag: '--publish-keep',
    placeholder: 'number',
    example: '300',
  },
  'publish.tables': {
    kind: kinds.tableList,
    without: 'all',
    description:
      'The tables to publish. A table of the target that is no longer in the list is published without rows, so that nothing in it grows old. Tables of CRM objects, such as `crm_deal`, may be named before they exist; when the list of objects was read, a name of none of them is refused. In the environment and with the flag, separate the names with commas.',
    flag: '--publish-tables',
    placeholder: 'tables',
    example: '["meetings", "messages", "members"]',
  },
  'publish.location': {
    kind: kinds.location,
    without: 'where the target is',
    description:
      'The URL at which readers find the target, if it is not at the same path for them. Readers cut a path at `?` and `#`, so a new target with one of these in its path needs a location without them. The location of a target cannot change later.',
    flag: '--publish-location',
    placeholder: 'url',
    example: '"s3://bucket/lake"',
  },
  'publish.s3_endpoint': {
    kind: kinds.endpoint,
    without: 'AWS, by `publish.s3_region`',
    description:
      'The address of the S3 API, without the bucket. Only for storage that is not AWS, and for addresses of your own at AWS.',
    flag: '--s3-endpoint',
    placeholder: 'url',
    example: '"https://minio.example.com"',
  },
  'publish.s3_region': {
    kind: kinds.text('the name of a region', /^[a-z\d-]{1,63}$/),
    default: 'us-east-1',
    description: 'The region of the bucket. Many other services accept any region.',
    flag: '--s3-region',
    placeholder: 'region',
    example: '"eu-central-1"',
  },
  'publish.s3_access_key_id': {
    kind: kinds.text(
      'an id of printable ASCII characters without spaces, commas and slashes',
      /^[!-+\-.0-~]{1,200}$/,
    ),
    without: 'credentials of the environment, profile or role',
    description:
      'The id of the access key. Without it and its secret, parley uses the credentials that programs of AWS find: `AWS_ACCESS_KEY_ID` and the like, a profile (`AWS_PROFILE`, also with SSO), a web identity, or the role of a container or machine. The key needs `s3:ListBucket` for the bucket, and `s3:GetObject`, `s3:PutObject` and `s3:DeleteObject` for the objects below the prefix.',
    flag: '--s3-access-key-id',
    placeholder: 'id',
    example: '"AKIAIOSFODNN7EXAMPLE"',
  },
  'publish.s3_secret_access_key': {
    kind: kinds.text(
      'a key of at most 200 printable ASCII characters without spaces',
      /^[\x21-\x7e]{1,200}$/,
    ),
    without: 'as for `publish.s3_access_key_id`',
    description:
      'The secret of the access key, in a file like `api.key`, and read only when parley publishes to S3. parley never prints, logs or stores it.',
    flag: '--s3-secret-access-key-file',
    example: '"s3.secret"',
    secret: 'the S3 secret access key',
  },
  'publish.s3_session_token': {
    kind: kinds.text('a token of printable ASCII characters without spaces', /^[\x21-\x7e]{1,8000}$/),
    description: 'The session token, if the access key is a temporary one. Treated like the secret.',
    flag: '--s3-session-token-file',
    example: '"s3.token"',
    secret: 'the S3 session token',
  },
  'publish.s3_path_style': {
    kind: kinds.boolean,
    without: 'true with `publish.s3_endpoint`',
    description:
      'Whether the bucket is named in the path of a URL instead of in the host name. MinIO and most other services need the path.',
    flag: '--s3-path-style',
    example: 'false',
  },
  'log.level': {
    kind: kinds.oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    default: 'info',
    description: 'The lowest level that is written.',
    flag: '--log-level',
    placeholder: 'level',
    example: '"debug"',
  },
} as const satisfies Record<`${keyof typeof SECTIONS}.${string}`, Setting>

export type SettingKey = keyof typeof SETTINGS

/** `SETTINGS` as a list, in the same order. */
export const SETTING_LIST: readonly (readonly [SettingKey, Setting])[] = Object.entries(SETTINGS).map(
  ([key, setting]) => [key as SettingKey, setting],
)

export const settingNamed = (key: SettingKey): Setting => SETTINGS[key]

/** Section and name of a setting in `Settings`: `crmDeal` and `closeDate` for `crm.deal.close_date`. */
export const propertiesOf = (key: SettingKey): readonly [section: string, name: string] => [
  camelCase(sectionOf(key)),
  camelCase(nameIn(key)),
]

export const camelCase = (name: string): string =>
  name.replace(/[._](.)/g, (_, letter: string) => letter.toUpperCase())

/** The section of a setting in the settings file, such as `crm.deal`. */
export const sectionOf = (key: string): string => key.slice(0, key.lastIndexOf('.'))

export const nameIn = (key: string): string => key.slice(key.lastIndexOf('.') + 1)

/** The environment variable of a setting: by default `PARLEY_SECTION_KEY`. */
export function environmentName(key: SettingKey): string {
  return settingNamed(key).environment ?? `PARLEY_${key.replaceAll('.', '_').toUpperCase()}`
}

/**
 * The key in a settings file that names the file with a secret. A relative path starts at the folder of the settings
 * file.
 */
export function fileKey(key: SettingKey): string {
  return `${key}_file`
}

/** The environment variable that names the file with a secret. */
export function fileEnvironmentName(key: SettingKey): string {
  return `${environmentName(key)}_FILE`
}

/** The environment variables that only a command of `[hooks]` gets, with the fields of the call. */
export const HOOK_VARIABLES = [
  'PARLEY_EVENT',
  'PARLEY_PROBLEM_ID',
  'PARLEY_PROBLEM_WHAT',
  'PARLEY_PROBLEM_DETAIL',
  'PARLEY_PROBLEM_SINCE',
  'PARLEY_PROBLEM_SECONDS',
  'PARLEY_PROBLEM_TODO',
  'PARLEY_TEXT',
] as const

/** The name of the systemd credential that holds a secret. */
export function credentialName(key: SettingKey): string {
  return key.replace('.', '_')
}

/** The secret settings, each with the name of its value in messages. */
export const SECRETS: readonly (readonly [SettingKey, string])[] = SETTING_LIST.flatMap(
  ([key, { secret }]) => (secret === undefined ? [] : [[key, secret] as const]),
)
