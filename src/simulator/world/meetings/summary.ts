import { formatInstant } from '../../base/instants.ts'
import { at, createDraw, mix } from '../../base/random.ts'
import { SALT } from '../../base/scene.ts'
import { meetingTitle } from '../../content/meetings.ts'
import { durationOf, type Meeting, meetingRecords, type Surroundings } from './meeting.ts'

const PLATFORMS = ['ZOOM', 'GOOGLE_MEET', 'TEAMS', 'IN_PERSON'] as const
const TYPES = ['Sales', 'Customer success', 'Internal', '商談'] as const

/** The item of the list, which the single read has too. */
export function summaryOf(around: Surroundings, meeting: Meeting) {
  const { seed, workspaceId } = around.scene
  const { index, id } = meeting
  const instant = (micros: number) => formatInstant(micros, mix(seed, SALT.meeting + 13, index))
  return {
    meeting_id: id,
    service_meeting_url: `https://app.parley-demo.example/meetings/${id}`,
    workspace_id: workspaceId,
    title: titleOf(around, meeting),
    platform: at(PLATFORMS, mix(seed, SALT.meeting + 14, index)),
    start_time: instant(meeting.startsAt),
    end_time: instant(meeting.endsAt),
    recording_duration: durationOf(around.scene, index),
    base_type: index % 4 === 0 ? 'INTERNAL' : 'EXTERNAL',
    recording_source: index % 6 === 5 ? 'UPLOAD' : 'BOT',
    overview_status: meeting.isOverviewReady ? 'COMPLETED' : index % 2 === 0 ? 'PROCESSING' : 'WAITING',
    crm_type: 'SALESFORCE',
    meeting_type_name: index % 11 === 10 ? null : at(TYPES, mix(seed, SALT.meeting + 15, index)),
  }
}

function titleOf({ scene, customers }: Surroundings, { index, revision }: Meeting): string {
  const { company } = meetingRecords(scene, customers, index)
  const companyName = company < 0 ? 'Independent' : customers.companyName(company)
  const title = meetingTitle(createDraw(scene.seed, SALT.meeting + 11, index), companyName)
  return revision > 0 ? `${title} (renamed ${revision})` : title
}
