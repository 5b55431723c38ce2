import type { NotedChanges } from '../changes/noted-changes.ts'
import type { Prepare } from '../database/sqlite-types.ts'

/** The members, with the columns of a version. A former member keeps name and address until they are purged. */
const MEMBERS = `(SELECT id, name, email, _deleted_at IS NULL AS is_member, coalesce(_deleted_at, _synced_at) AS changed_at FROM members)`

const END_MEMBERS = `
UPDATE member_versions AS v SET to_at = max(v.from_at, m.changed_at) FROM ${MEMBERS} m
WHERE m.id = v.member_id AND v.to_at IS NULL AND (v.is_member <> m.is_member
  OR (m.is_member AND (v.name, v.email) IS NOT (m.name, m.email)))`

const BEGIN_MEMBERS = `
INSERT INTO member_versions (member_id, from_at, to_at, name, email, is_member)
SELECT m.id, max(m.changed_at, coalesce((SELECT max(v.to_at) FROM member_versions v WHERE v.member_id = m.id), '')), NULL,
  m.name, m.email, m.is_member
FROM ${MEMBERS} m
WHERE NOT EXISTS (SELECT 1 FROM member_versions v WHERE v.member_id = m.id AND v.to_at IS NULL)
ON CONFLICT DO UPDATE SET to_at = NULL, name = excluded.name, email = excluded.email, is_member = excluded.is_member`

const END_TEAMS = `
UPDATE team_versions AS v SET to_at = max(v.from_at, coalesce(t._deleted_at, t._synced_at)) FROM teams t
WHERE t.id = v.team_id AND v.to_at IS NULL AND (t._deleted_at IS NOT NULL OR v.team IS NOT t.name
  OR NOT EXISTS (SELECT 1 FROM team_members m WHERE m.team_id = v.team_id AND m.member_id = v.member_id))`

const BEGIN_TEAMS = `
INSERT INTO team_versions (team_id, member_id, from_at, to_at, team)
SELECT m.team_id, m.member_id, max(t._synced_at, coalesce((SELECT max(v.to_at) FROM team_versions v
  WHERE v.team_id = m.team_id AND v.member_id = m.member_id), '')), NULL, t.name
FROM teams t JOIN team_members m ON m.team_id = t.id
WHERE t._deleted_at IS NULL AND NOT EXISTS (SELECT 1 FROM team_versions v
  WHERE v.team_id = m.team_id AND v.member_id = m.member_id AND v.to_at IS NULL)
ON CONFLICT DO UPDATE SET to_at = NULL, team = excluded.team`

/** Removes versions of people who left a team in the instant in which parley read that they had joined it. */
const REMOVE_EMPTY = 'DELETE FROM team_versions WHERE to_at = from_at'

/**
 * Writes `member_versions` and `team_versions`: ends the versions that differ from `members` and `teams`, and begins
 * the versions that are missing. So it does not matter which code has changed a member, and a second call writes
 * nothing. A version takes its time from its row, and never begins before the end of the one before, even after a clock
 * was set back.
 */
export function createPeopleVersions(prepare: Prepare) {
  const members = [END_MEMBERS, BEGIN_MEMBERS].map(sql => prepare(sql))
  const teams = [END_TEAMS, BEGIN_TEAMS, REMOVE_EMPTY].map(sql => prepare(sql))
  return {
    /** Call it as the last step of each transaction, before its notes are stored. */
    follow(changes: Pick<NotedChanges, 'isNoted'>) {
      if (changes.isNoted('members')) for (const statement of members) statement.run()
      if (changes.isNoted('teams') || changes.isNoted('team_members'))
        for (const statement of teams) statement.run()
    },
    /**
     * Compares everything: an earlier version of parley may have changed members and teams. Call it inside a transaction.
     */
    update() {
      for (const statement of [...members, ...teams]) statement.run()
    },
  }
}
