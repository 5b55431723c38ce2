import type { Change } from '../../src/simulator/changes/change.ts'
import type { MeasureName, Watch } from './watcher.ts'
import type { Workspace } from './workspace.ts'

/** Changes the workspace, and says how to recognise each change in the warehouse. */
export interface Publisher {
  /** Makes one change of a random kind. Returns nothing when the change cannot be recognised. */
  publish(): Promise<Watch[]>
  /** Whether it published or changed the item with this id. */
  isNew(id: string): boolean
}

interface Kind {
  change: Change
  measures: readonly MeasureName[]
}

const MESSAGE: Kind = {
  change: { kind: 'publish', resource: 'messages' },
  measures: ['new messages', 'texts of new messages'],
}
const KINDS: readonly Kind[] = [
  MESSAGE,
  { change: { kind: 'publish', resource: 'activities' }, measures: ['new activities'] },
  {
    change: { kind: 'publish', resource: 'meetings' },
    measures: ['new meetings with their title', 'transcripts of new meetings'],
  },
  {
    change: { kind: 'edit', resource: 'crm_records', object: 'deal' },
    measures: ['changed fields of CRM records'],
  },
]

type Fields = Readonly<Record<string, unknown>>

export async function createPublisher(workspace: Workspace): Promise<Publisher> {
  const touched = new Set<string>()
  const deals = await dealsIn(workspace)
  const drawDeal = () => [...deals.keys()][Math.floor(Math.random() * deals.size)] ?? ''
  return {
    isNew: id => touched.has(id),
    async publish() {
      const { change, measures } = KINDS[Math.floor(Math.random() * KINDS.length)] ?? MESSAGE
      const isEdit = change.kind === 'edit'
      const { ids } = await workspace.change({ ...change, ...(isEdit && { id: drawDeal() }) })
      const publishedAt = performance.now()
      const [key = ''] = ids
      touched.add(key)
      const field = isEdit ? await changedField(workspace, deals, key) : {}
      if (field === undefined) return []
      return measures.map(measure => ({ measure, key, publishedAt, parameters: { key, ...field } }))
    },
  }
}

async function dealsIn(workspace: Workspace): Promise<Map<string, Fields>> {
  const deals = new Map<string, Fields>()
  for await (const line of workspace.lines('crm_records')) {
    const { object, id, fields } = JSON.parse(line) as { object: string; id: string; fields: Fields }
    if (object === 'deal') deals.set(id, fields)
  }
  return deals
}

/** A field whose text has changed. Numbers are left out, because a double may not hold them. */
async function changedField(
  workspace: Workspace,
  deals: Map<string, Fields>,
  id: string,
): Promise<{ path: string; value: string } | undefined> {
  const before = deals.get(id) ?? {}
  const after = (await dealsIn(workspace)).get(id) ?? {}
  deals.set(id, after)
  for (const [name, value] of Object.entries(after)) {
    if (typeof value === 'string' && value !== before[name]) return { path: `$."${name}"`, value }
  }
  return undefined
}

/** Ids of all items that the lists have now, and of the items that their activities name. */
export async function listedIds(workspace: Workspace): Promise<ReadonlySet<string>> {
  const listed = new Set<string>()
  for (const kind of ['activities', 'messages', 'crm_records']) {
    for await (const line of workspace.lines(kind)) {
      const { id, source_id } = JSON.parse(line) as { id: string; source_id?: string }
      listed.add(id)
      if (source_id !== undefined) listed.add(source_id)
    }
  }
  return listed
}
