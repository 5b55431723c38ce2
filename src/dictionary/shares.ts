/** Shares that say how well parts of the warehouse fit together. A low share is no fault: it is worth knowing. */
export interface MatchShare {
  /** What is counted, in the plural. */
  about: string
  /** The tables and views that the statement reads. */
  tables: readonly string[]
  /** Selects how many there are, and how many of them match. */
  sql: string
}

export const SHARES: Readonly<Record<string, MatchShare>> = {
  speakers: {
    about: 'speakers of meetings are matched to a person: an attendee of their meeting has the same name',
    tables: ['live_meeting_speakers', 'live_meeting_attendees'],
    sql: `SELECT count(*), coalesce(sum(EXISTS (SELECT 1 FROM live_meeting_attendees a
        WHERE a.meeting_id = s.meeting_id AND lower(trim(a.name)) = lower(trim(s.speaker_name)))), 0)
      FROM live_meeting_speakers s WHERE s.speaker_name IS NOT NULL`,
  },
}
