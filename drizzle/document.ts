import { CATALOG, type PlacedTable, TABLES } from '../src/catalog.ts'
import type { Column, ColumnKind, Resource, Table } from '../src/resource.ts'

/** Where the generated part of `drizzle/README.md` begins; what stands above is written by hand. */
const MARK = '<!-- From here on written by `npm run schema` from the declarations in src/resources. -->'

/** The page with its generated part made anew. */
export function withSchema(page: string): string {
  const [written = ''] = page.split(MARK)
  return `${written}${MARK}\n\n${schemaDocument()}`
}

/** Every table of the warehouse in Markdown: first those of the resources, then the sync state that people query. */
export function schemaDocument(): string {
  return `${[
    '## Tables',
    contents(),
    ...CATALOG.filter(hasTables).flatMap(resourceSection),
    '### Sync state',
    'What parley knows about its own work. Every `sync_*` table that is not named here is internal.',
    ...SYNC.flatMap(section),
    '### Views made for convenience',
    ...VIEWS.flatMap(section),
  ].join('\n\n')}\n`
}

const hasTables = ({ tables }: Resource): boolean => tables.length > 0

function contents(): string {
  return CATALOG.filter(hasTables)
    .map(({ about, tables }) => `- ${about}: ${tables.flatMap(withChildren).map(linkTo).join(', ')}`)
    .join('\n')
}

const withChildren = (table: Table): Table[] => [
  table,
  ...table.children.flatMap(child => withChildren(child.table)),
]

const linkTo = ({ name }: Table): string => `[\`${name}\`](#${name})`

function resourceSection({ about, tables }: Resource): string[] {
  return [`### ${about}`, ...tables.flatMap(withChildren).flatMap(tableSection)]
}

function tableSection(table: Table): string[] {
  const placed = TABLES.get(table.name)
  const columns = Object.entries(table.columns).map(([name, column]) => [
    `\`${name}\``,
    column.kind,
    table.key.includes(name) ? 'key' : '',
    meaning(column),
  ])
  return [`#### ${table.name}`, `${table.about} ${kindOf(table, placed)}`, markdownTable(COLUMNS, columns)]
}

const COLUMNS = ['column', 'type', 'key', 'meaning']

function kindOf(table: Table, placed: PlacedTable | undefined): string {
  if (table.kind === 'entity') return '_Entity._'
  if (CATALOG.some(({ history }) => history?.into === table.name)) return '_History._'
  if (table.kind === 'link') return '_List of its own._'
  const above = placed?.above?.name ?? table.livesWith?.table
  return above === undefined ? '_Child._' : `_Child of \`${above}\`._`
}

/** As a sentence, though some are declared without their full stop. */
function meaning({ about }: Column): string {
  return about.endsWith('.') ? about : `${about}.`
}

// ------------------------------------------------------------------------------------------------ sync state

interface Described {
  name: string
  about: string
  columns: Readonly<Record<string, readonly [type: ColumnKind, meaning: string]>>
}

const SYNC: readonly Described[] = [
  {
    name: 'sync_status',
    about: 'One row per resource. _View._',
    columns: {
      resource: ['text', 'Name of the resource.'],
      state: [
        'text',
        '`backfilling` until it was complete for the first time; `waiting`: complete, but something is not ready at the API; `unavailable`: this workspace does not offer it; `failing`: the last run failed; else `ok`.',
      ],
      reason: ['text', 'Why it is not `ok`, where there is more to say.'],
      rows_live: ['integer', 'Rows that the API publishes.'],
      rows_deleted: ['integer', 'Rows whose absence was confirmed.'],
      newest_at: ['timestamp', 'Latest event time among the live rows.'],
      fresh_as_of: [
        'timestamp',
        'Start of the last complete read of the newest end, or of the last complete pass.',
      ],
      complete_as_of: [
        'timestamp',
        'Everything published before this instant, of whatever event time, had been read; NULL while history is loading.',
      ],
      backfill_done: ['integer', 'How much of the backfill is done, in rows.'],
      backfill_total: ['integer', 'Out of how much; NULL when unknown.'],
      pending_tasks: ['integer', 'Reads that are still to be made or repeated.'],
      rejected: ['integer', 'Items that could not be stored, see `sync_rejects`.'],
      last_success_at: ['timestamp', 'When it was last read without a fault.'],
      next_run_at: ['timestamp', 'When it is next due.'],
    },
  },
  {
    name: 'sync_coverage',
    about:
      'One row per time segment of the resources that are read in time order. Segments leave no gap. Of activities and messages the oldest has no start and the newest no end; those of the access log are the periods in which it was asked for. _View._',
    columns: {
      resource: ['text', 'Name of the resource.'],
      from_at: ['timestamp', 'Start of the segment; NULL for the beginning of time.'],
      to_at: ['timestamp', 'Its end, not part of it; NULL for the open end.'],
      listed_at: ['timestamp', 'When it was last read to its end; NULL when it never was.'],
      rows_live: ['integer', 'Live rows within it; those without a time are in the oldest.'],
      bodies_present: ['integer', 'E-mails within it whose text is known.'],
      bodies_pending: ['integer', 'E-mails within it whose text is still to be read.'],
    },
  },
  {
    name: 'sync_runs',
    about: 'One row per run of a resource.',
    columns: {
      id: ['integer', 'Number of the run.'],
      resource: ['text', 'Name of the resource.'],
      lane: ['text', '`history` until the resource was complete once, then `audit`.'],
      started_at: ['timestamp', 'When it began.'],
      ended_at: ['timestamp', 'When it ended; NULL while it is under way.'],
      outcome: [
        'text',
        '`complete`, `stopped` before its end, `failed`, `unavailable` (not offered here) or `interrupted` (the process died).',
      ],
      requests: ['integer', 'Requests that it made.'],
      throttled: ['integer', 'Of these, refused as too many (429).'],
      rows_read: ['integer', 'Records that the API sent.'],
      rows_changed: ['integer', 'Rows written because they were new or had changed.'],
      rows_deleted: ['integer', 'Rows whose absence it confirmed.'],
      error: ['text', 'What went wrong.'],
    },
  },
  {
    name: 'sync_rejects',
    about: 'Every item that could not be stored. Nothing received is dropped without a row here.',
    columns: {
      id: ['integer', 'Number of the item.'],
      resource: ['text', 'Name of the resource.'],
      item: ['json', 'JSON as received.'],
      reason: ['text', 'Why it could not be stored.'],
      first_seen_at: ['timestamp', 'When it was first received.'],
      last_seen_at: ['timestamp', 'When it was last received.'],
      resolved_at: ['timestamp', 'When it was stored after all, or was no longer listed; NULL until then.'],
    },
  },
]

const VIEWS: readonly Described[] = [
  {
    name: 'transcript_words',
    about:
      'One row per spoken word, unfolded from `transcript_entries.words`. It holds millions of rows in a large warehouse: always ask for one meeting.',
    columns: {
      meeting_id: ['text', 'Meeting.'],
      entry_position: ['integer', 'Entry (`transcript_entries.position`).'],
      position: ['integer', '0-based index of the word within the entry.'],
      text: ['text', 'The word.'],
      start_time: ['real', 'When it begins, as the API sent it.'],
      end_time: ['real', 'When it ends, as the API sent it.'],
    },
  },
  {
    name: 'message_participants',
    about: 'Senders and receivers of each e-mail: the union over its live copies by role and address.',
    columns: {
      header_message_id: ['text', 'E-mail (`messages.header_message_id`).'],
      role: ['text', '`FROM`, `TO`, `CC` or `BCC`.'],
      handle: ['text', 'Mail address.'],
      display_name: ['text', 'Name from the first copy that shows one.'],
      contact_id: ['text', 'CRM contact, from the first copy that knows it.'],
    },
  },
]

function section({ name, about, columns }: Described): string[] {
  const rows = Object.entries(columns).map(([column, [kind, means]]) => [`\`${column}\``, kind, means])
  return [`#### ${name}`, about, markdownTable(['column', 'type', 'meaning'], rows)]
}

/** In the formatter's shape: every column as wide as its widest cell. */
function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [head, ...rows].map(row => row.map(cell => cell.replaceAll('|', '\\|')))
  const widths = head.map((_, column) => Math.max(...cells.map(row => row[column]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  const [titles, ...body] = cells.map(line)
  return [titles, line(widths.map(width => '-'.repeat(width))), ...body].join('\n')
}
