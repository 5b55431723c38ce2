import type { ItemState, Items } from '../base/items.ts'
import type { Customers } from './crm/customers.ts'
import { published } from './crm/people.ts'
import type { WorldParts } from './parts.ts'

/**
 * Everything that the API publishes now: each item as JSON text in the API's shape, so that numbers keep every digit.
 * The content of the less obvious kinds:
 * `unlisted_activities`, `inactive_playbooks`: items that only single reads return;
 * `withheld_meetings`: `{meeting_id}` of each meeting that answers 403;
 * `collection_meetings`: `{collection_id, meeting_id}`;
 * `transcripts`: `{meeting_id, entries}`; `playbook_results`: `{meeting_id, results}`;
 * `execution_settings`: `{playbook_id, setting}`;
 * `crm_record_links`: `{object, record_id, related_object, related_id}`, each pair once.
 */
export const TRUTH_KINDS = [
  'members',
  'teams',
  'collections',
  'collection_meetings',
  'activities',
  'unlisted_activities',
  'messages',
  'meetings',
  'withheld_meetings',
  'transcripts',
  'playbook_results',
  'playbooks',
  'inactive_playbooks',
  'execution_settings',
  'crm_objects',
  'crm_records',
  'crm_record_links',
  'access_logs',
  'bot_definition',
  'integrations',
] as const

export type TruthKind = (typeof TRUTH_KINDS)[number]

export interface Truth {
  /** JSON text of each item, generated one at a time. */
  lines(kind: TruthKind): Generator<string>
  /** The same items, parsed. Numbers that a double cannot hold exactly lose digits. */
  items(kind: TruthKind): Generator<Record<string, unknown>>
  count(kind: TruthKind): number
}

export function createTruth(world: WorldParts): Truth {
  const lines = (kind: TruthKind): Generator<string> => SOURCES[kind](world)
  return {
    lines,
    items: function* (kind) {
      for (const line of lines(kind)) yield JSON.parse(line)
    },
    count: kind => {
      let count = 0
      for (const _ of lines(kind)) count++
      return count
    },
  }
}

export function isTruthKind(text: string): text is TruthKind {
  return TRUTH_KINDS.some(kind => kind === text)
}

const SOURCES: Record<TruthKind, (world: WorldParts) => Generator<string>> = {
  members: ({ people }) => linesOf(people.memberOrder(), people.memberJson),
  teams: ({ people }) => linesOf(people.teamOrder(), people.teamJson),
  collections: ({ collections }) => linesOf(collections.order(), collections.json),
  *collection_meetings({ collections, meetings }) {
    for (const collection of collections.order()) {
      for (const meeting of published(meetings.items)) {
        if (!collections.hasMeeting(collection, meeting)) continue
        yield JSON.stringify({
          collection_id: collections.items.ids.of(collection),
          meeting_id: meetings.items.ids.of(meeting),
        })
      }
    }
  },
  activities: world => activityLines(world, { areListed: true }),
  unlisted_activities: world => activityLines(world, { areListed: false }),
  messages: ({ messages }) => linesOf(inState(messages.items, 'published'), messages.json),
  meetings: ({ meetings }) => linesOf(inState(meetings.items, 'published'), meetings.detailJson),
  withheld_meetings: ({ meetings: { items } }) =>
    linesOf(inState(items, 'hidden'), index => `{"meeting_id":"${items.ids.of(index)}"}`),
  transcripts: ({ meetings }) =>
    linesOf(
      inState(meetings.items, 'published'),
      index => `{"meeting_id":"${meetings.items.ids.of(index)}","entries":${meetings.transcriptJson(index)}}`,
    ),
  *playbook_results(world) {
    const { meetings } = world
    for (const index of inState(meetings.items, 'published')) {
      if (!meetings.isOverviewReady(index)) continue
      yield `{"meeting_id":"${meetings.items.ids.of(index)}","results":[${resultsOf(world, index).join(',')}]}`
    }
  },
  playbooks: ({ playbooks }) => linesOf(inState(playbooks.items, 'published'), playbooks.json),
  inactive_playbooks: ({ playbooks }) => linesOf(inState(playbooks.items, 'hidden'), playbooks.json),
  *execution_settings({ playbooks }) {
    for (let index = 0; index < playbooks.items.count(); index++) {
      if (playbooks.items.state(index) === 'deleted') continue
      yield `{"playbook_id":"${playbooks.items.ids.of(index)}","setting":${playbooks.settingJson(index)}}`
    }
  },
  crm_objects: ({ records }) => linesOf(records.objects(), records.objectJson),
  *crm_records({ records }) {
    for (const object of records.objects()) {
      const items = records.itemsOf(object.name)
      if (items) yield* linesOf(inState(items, 'published'), index => records.recordJson(object, index))
    }
  },
  *crm_record_links({ customers, records }) {
    for (const [object, relatedObject, partnersOf] of LINKED) {
      const [from, to] = [records.itemsOf(object), records.itemsOf(relatedObject)]
      if (!from || !to) continue
      for (const index of inState(from, 'published')) {
        for (const partner of partnersOf(customers, index)) {
          if (!to.isPublished(partner)) continue
          yield JSON.stringify({
            object,
            record_id: from.ids.of(index),
            related_object: relatedObject,
            related_id: to.ids.of(partner),
          })
        }
      }
    }
  },
  *access_logs({ accessLog }) {
    for (let position = 0; position < accessLog.count(); position++) yield accessLog.json(position)
  },
  *bot_definition(world) {
    const bot = world.botJson()
    if (bot !== undefined) yield bot
  },
  *integrations(world) {
    const integrations = world.integrationsJson()
    if (integrations !== undefined) yield integrations
  },
}

const LINKED: readonly [
  'company' | 'deal',
  string,
  (customers: Customers, index: number) => readonly number[],
][] = [
  ['deal', 'company', (customers, deal) => [customers.companyOfDeal(deal)]],
  ['deal', 'contact', (customers, deal) => customers.contactsOfDeal(deal)],
  ['company', 'contact', (customers, company) => customers.contactsOfCompany(company)],
]

function* inState(items: Items, state: ItemState): Generator<number> {
  for (let index = 0; index < items.count(); index++) if (items.state(index) === state) yield index
}

function* linesOf<T>(items: Iterable<T>, json: (item: T) => string): Generator<string> {
  for (const item of items) yield json(item)
}

function* activityLines(
  { activities }: WorldParts,
  { areListed }: { areListed: boolean },
): Generator<string> {
  for (const index of inState(activities.items, 'published')) {
    const links = activities.linksOf(index)
    if (links.length > 0 === areListed) yield activities.json(index, links)
  }
}

/** The latest result of each playbook that was run in the meeting. */
export function resultsOf({ meetings, playbooks }: WorldParts, meeting: number): string[] {
  return playbooks.runsIn(meeting).map(playbook =>
    playbooks.resultJson({
      meeting,
      playbook,
      version: meetings.items.revision(meeting),
      endedAt: meetings.endOf(meeting),
    }),
  )
}
