import { SECOND } from '../../base/instants.ts'
import { createItems, type Items } from '../../base/items.ts'
import { mix } from '../../base/random.ts'
import { SALT } from '../../base/scene.ts'
import { createTimeline, type Timeline } from '../../base/timeline.ts'
import type { RelatedRecords } from '../crm/related.ts'
import { detailOf } from './detail.ts'
import {
  durationOf,
  hasCrmItem,
  type Meeting,
  meetingRecords,
  ownerOf,
  type Surroundings,
  startTimes,
} from './meeting.ts'
import { createReadiness, type MeetingsOptions, type Readiness } from './readiness.ts'
import { summaryOf } from './summary.ts'
import { transcriptOf } from './transcript.ts'

/** Item states: published is WORKSPACE_ONLY, hidden is ATTENDEES_ONLY, deleted includes unfinished meetings. */
export interface Meetings extends Readiness {
  items: Items
  timeline: Timeline
  endOf(index: number): number
  relatedRecords(index: number): RelatedRecords
  owner(index: number): number
  hasCrm(index: number): boolean
  listJson(index: number, idName: 'meeting_id' | 'id'): string
  detailJson(index: number): string
  /** The entries as a JSON array. */
  transcriptJson(index: number): string
  /** A meeting that is not ready has no overview and no transcript yet. */
  add(micros: number, isReady: boolean): number
}

export function createMeetings(around: Surroundings, options: MeetingsOptions): Meetings {
  const { scene, customers } = around
  const { seed, sizes } = scene
  const items = createItems({
    seed,
    salt: SALT.meeting,
    shape: 'hex24',
    count: sizes.meetings,
    initial: index => {
      const part = mix(seed, SALT.meeting + 1, index) % 100
      return part < 7 ? 'hidden' : part < 9 ? 'deleted' : 'published'
    },
  })
  const timeline = createTimeline(startTimes(scene))
  const { set: setReadiness, ...readiness } = createReadiness(scene, options)

  const endOf = (index: number): number => timeline.timeOf(index) + durationOf(scene, index) * SECOND
  const relatedRecords = (index: number): RelatedRecords => meetingRecords(scene, customers, index)
  const meetingAt = (index: number): Meeting => ({
    index,
    id: items.ids.of(index),
    revision: items.revision(index),
    startsAt: timeline.timeOf(index),
    endsAt: endOf(index),
    isOverviewReady: readiness.isOverviewReady(index),
  })

  return {
    items,
    timeline,
    ...readiness,
    endOf,
    relatedRecords,
    owner: index => ownerOf(scene, index),
    hasCrm: index => hasCrmItem(scene, relatedRecords(index), index),
    listJson: (index, idName) => {
      const { meeting_id, ...rest } = summaryOf(around, meetingAt(index))
      return JSON.stringify({ [idName]: meeting_id, ...rest })
    },
    detailJson: index => JSON.stringify(detailOf(around, meetingAt(index))),
    transcriptJson: index => (readiness.hasTranscript(index) ? transcriptOf(around, index) : '[]'),
    add: (micros, isReady) => {
      const index = items.add(micros)
      timeline.place(index, micros)
      setReadiness(index, isReady)
      return index
    },
  }
}
