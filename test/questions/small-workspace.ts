import { loadSettings } from '../../src/config/load-settings.ts'
import { createMeta, META } from '../../src/store/sync/meta.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { reportsOf } from '../support/reports-of.ts'
import { questionNamed, withParameters } from './question-file.ts'
import type { Expected } from './recount.ts'

/** A warehouse of a few rows that a test lists, for cases that the simulator does not have. */
export interface SmallWorkspace {
  store: TemporaryStore
  members(...members: readonly { id: string; name?: string; email: string | null }[]): void
  /** One copy of an e-mail. */
  mail(copy: Mail): void
  meeting(meeting: Meeting): void
  /** Rows of one CRM object: an id, and fields. `now` is when parley reads them. */
  records(object: string, rows: readonly CrmRow[], now?: string): void
  /** An activity that is linked to records, each as `deal:d1` or `deal:d1:DERIVED`. */
  activity(activity: Activity): void
  tombstone(table: string, ...key: string[]): void
  /** The answer on the first of May 2025, when everything is complete. */
  ask(
    name: string,
    parameters?: Readonly<Record<string, string>>,
    env?: Readonly<Record<string, string>>,
  ): Promise<Expected[]>
}

export interface Mail {
  id: string
  /** The Message-ID. Default: one derived from the id. */
  header?: string
  thread?: string | null
  at: string
  /** `FROM address`, `TO address contact`, in the API's order. */
  people: readonly string[]
  subject?: string
}

export interface Meeting {
  id: string
  at: string
  access?: 'open' | 'withheld'
  /** The API's own fields on top of these. */
  more?: object
}

export interface CrmRow {
  id: string
  created_at?: string | null
  updated_at?: string | null
  [field: string]: unknown
}

export interface Activity {
  id: string
  kind: 'MEETING' | 'MESSAGE' | 'OBJECT_CHANGE_EVENT'
  at: string
  source?: string
  links: readonly string[]
}

/** When these rows are read. */
const READ_AT = '2025-04-30T00:00:00.000Z'
export const DELETED_AT = '2025-05-01T00:00:00.000Z'

const TODAY = '2025-05-01T00:00:00.000Z'

export function smallWorkspace(): SmallWorkspace {
  const store = temporaryStore()
  const reports = reportsOf({ ...store, now: TODAY })
  return {
    store,
    members: (...members) => {
      store.put('members', members)
    },
    mail: ({ id, header = `<${id}>`, thread = null, at, people, subject = 'Hello' }) => {
      const participants = people.map(person => {
        const [role, handle, contact_id = null] = person.split(' ')
        return { role, handle, contact_id, display_name: null }
      })
      const copy = {
        id,
        header_message_id: header,
        thread_id: thread,
        subject,
        received_at: at,
        participants,
      }
      store.put('message_copies', [{ ...copy, is_internal: false, is_group_email: false }])
    },
    meeting: ({ id, at, access = 'open', more = {} }) => {
      const payload = { meeting_id: id, title: id, start_time: at, service_meeting_url: null, ...more }
      store.put('meetings', [payload])
      store.db
        .prepare("UPDATE meetings SET access = ?, transcript_state = 'present' WHERE id = ?")
        .run(access, id)
    },
    records: (object, rows, now = READ_AT) => {
      const payloads = rows.map(({ id, created_at = null, updated_at = null, ...fields }) => ({
        id,
        object,
        visibility: 'workspace',
        fields,
        created_at,
        updated_at,
      }))
      store.put('crm_records', payloads, { requested: object, now })
    },
    activity: ({ id, kind, at, source = id, links }) => {
      const linked = links.map(link => {
        const [context_type, context_id, origin = 'DIRECT'] = link.split(':')
        return { context_type, context_id, origin }
      })
      store.put('activities', [
        { id, type: 'kind', source_type: kind, source_id: source, occurred_at: at, links: linked },
      ])
    },
    tombstone: (table, ...key) => {
      store.atomically(() => store.tombstone(table, [key], DELETED_AT))
    },
    ask: async (name, parameters = {}, env = {}) => {
      store.db
        .prepare(
          "INSERT INTO sync_resources (resource, complete_as_of) VALUES ('activities', ?) ON CONFLICT DO UPDATE SET complete_as_of = excluded.complete_as_of",
        )
        .run(TODAY)
      createMeta(store.prepare).set(META.chosenResources, '["activities"]')
      const { settings } = loadSettings({ flags: {}, env, cwd: '/', requireApi: false })
      await reports.update(settings)
      return store.db.prepare(withParameters(questionNamed(name), parameters)).all() as Expected[]
    },
  }
}

/** Only these columns of an answer. */
export const only = (rows: readonly Expected[], ...columns: readonly string[]): Expected[] =>
  rows.map(row => Object.fromEntries(columns.map(column => [column, row[column] ?? null])))
