/**
 * What makes questions about the demo's workspace hard, as in real ones, and SQL that counts where it does so. Only simulated
 * workspaces with `realistic` have these traps.
 */
export const DEMO_TRAPS: readonly { trap: string; sql: string }[] = [
  {
    trap: 'copies of one e-mail are in two threads',
    sql: `SELECT count(*) FROM (SELECT 1 FROM message_copies WHERE _deleted_at IS NULL
      GROUP BY mail_id HAVING count(DISTINCT thread_id) > 1)`,
  },
  {
    trap: 'a contact writes from two addresses',
    sql: `SELECT count(*) FROM live_crm_contact c
      WHERE c.email IN (SELECT handle FROM live_message_participants)
        AND c.secondary_email IN (SELECT handle FROM live_message_participants)`,
  },
  {
    trap: 'amounts are in three currencies, and the smallest in yen is larger than the largest in euros',
    sql: `SELECT (SELECT min(amount) FROM live_crm_deal WHERE currency = 'JPY')
        > (SELECT max(amount) FROM live_crm_deal WHERE currency = 'EUR')
      AND (SELECT count(*) FROM live_crm_deal WHERE currency = 'USD')`,
  },
  {
    trap: 'private persons outside have addresses of free mail providers',
    sql: `SELECT count(DISTINCT handle) FROM live_message_participants WHERE contact_id IS NULL
      AND (handle LIKE '%@gmail.com' OR handle LIKE '%@yahoo.co.jp')`,
  },
  {
    trap: 'a member sends e-mails from an address of a free mail provider',
    sql: `SELECT count(*) FROM live_members m JOIN live_message_participants p ON p.handle = m.email
      WHERE p.role = 'FROM' AND m.email LIKE '%@gmail.com'`,
  },
  {
    trap: 'one person of a domain outside is internal, and the others are not',
    sql: `SELECT count(*) FROM (SELECT 1 FROM live_meeting_attendees WHERE NOT is_workspace_member
      GROUP BY substr(email, instr(email, '@'))
      HAVING count(DISTINCT CASE WHEN is_internal THEN email END) = 1 AND min(is_internal) = 0)`,
  },
  {
    trap: 'a former member owns deals and has sent e-mails',
    sql: `SELECT count(*) FROM members m JOIN live_crm_deal d ON d.owner_id = m.id
      WHERE m._deleted_at IS NOT NULL
        AND m.email IN (SELECT handle FROM live_message_participants WHERE role = 'FROM')`,
  },
  {
    trap: 'the name of a former member who owns deals was purged',
    sql: `SELECT count(*) FROM members m JOIN live_crm_deal d ON d.owner_id = m.id
      WHERE m._deleted_at IS NOT NULL AND m.name IS NULL`,
  },
  {
    trap: 'deals have owners who left before the first backfill',
    sql: `SELECT count(*) FROM live_crm_deal WHERE owner_id NOT IN (SELECT id FROM members)`,
  },
  ...['stage_id', 'amount', 'close_date', 'forecast_category'].map(field => ({
    trap: `changes of ${field} were observed in four weeks or more`,
    sql: `SELECT count(DISTINCT substr(observed_at, 1, 10)) >= 4 FROM crm_record_changes
      WHERE object = 'deal' AND field = '${field}'`,
  })),
  {
    trap: 'a close date was moved to an earlier day',
    sql: `SELECT count(*) FROM crm_record_changes
      WHERE object = 'deal' AND field = 'close_date' AND new_value ->> '$' < old_value ->> '$'`,
  },
  {
    trap: 'a close date was cleared',
    sql: `SELECT count(*) FROM crm_record_changes WHERE object = 'deal' AND field = 'close_date'
      AND old_value ->> '$' IS NOT NULL AND new_value ->> '$' IS NULL`,
  },
  {
    trap: 'probabilities are per cent in one pipeline and fractions in the other',
    sql: `SELECT count(*) FROM (SELECT max(probability) AS most FROM live_crm_stage GROUP BY pipeline_id) AS one,
      (SELECT max(probability) AS most FROM live_crm_stage GROUP BY pipeline_id) AS other
      WHERE one.most = 100 AND other.most = 1`,
  },
  {
    trap: 'another object has amounts and stages too',
    sql: `SELECT count(*) FROM live_crm_renewal_order WHERE amount IS NOT NULL AND stage IS NOT NULL`,
  },
  {
    trap: 'a customer has been waiting for an answer since a Friday',
    sql: `SELECT count(*) FROM (SELECT header_message_id AS mail, thread_id, max(received_at) AS received_at
        FROM live_messages WHERE thread_id IS NOT NULL GROUP BY thread_id) t
      JOIN live_message_participants p ON p.header_message_id = t.mail AND p.role = 'FROM'
      WHERE p.contact_id IS NOT NULL AND strftime('%w', t.received_at) = '5'
        AND t.received_at < date('now', '-3 days')`,
  },
  {
    trap: 'a group e-mail has more than five people on each side',
    sql: `SELECT count(*) FROM (SELECT count(*) FILTER (WHERE handle LIKE '%@parley-demo.example') AS ours, count(*) AS everyone
        FROM live_messages m JOIN live_message_participants p ON p.header_message_id = m.header_message_id
        WHERE m.is_group_email GROUP BY m.header_message_id)
      WHERE ours > 5 AND everyone - ours > 5`,
  },
  {
    trap: 'open deals are in a stage that sounds like won',
    sql: `SELECT count(*) FROM live_crm_deal d JOIN live_crm_stage s ON s.id = d.stage_id
      WHERE NOT d.is_closed AND s.name = 'NDA signed'`,
  },
  {
    trap: 'won deals are in stages that are not named won',
    sql: `SELECT count(DISTINCT s.name) = 2 FROM live_crm_deal d JOIN live_crm_stage s ON s.id = d.stage_id
      WHERE d.is_closed AND s.name IN ('Contract active', 'Renewed')`,
  },
  {
    trap: 'closed deals are in a deleted stage',
    sql: `SELECT count(*) FROM live_crm_deal d JOIN crm_stage s ON s.id = d.stage_id
      WHERE d.is_closed AND s._deleted_at IS NOT NULL`,
  },
  {
    trap: 'a contact who has opted out is still written to',
    sql: `SELECT count(*) FROM live_crm_contact c JOIN live_message_participants p ON p.contact_id = c.id
      WHERE c.has_opted_out AND p.role = 'TO'`,
  },
  {
    trap: 'a speaker of a meeting is none of its attendees',
    sql: `SELECT count(*) FROM live_meeting_speakers s WHERE s.speaker_name = 'Guest 1'
      AND s.speaker_name NOT IN (SELECT name FROM live_meeting_attendees WHERE name IS NOT NULL)`,
  },
  {
    trap: 'a meeting is withheld',
    sql: `SELECT count(*) FROM live_meetings WHERE access = 'withheld'`,
  },
  {
    trap: 'a member does nothing for four weeks, and then goes on',
    sql: `SELECT count(*) FROM (SELECT at, lag(at) OVER (PARTITION BY member ORDER BY at) AS before FROM (
        SELECT m.id AS member, x.received_at AS at FROM live_members m
          JOIN live_message_participants p ON p.handle = m.email AND p.role = 'FROM'
          JOIN live_messages x ON x.header_message_id = p.header_message_id
        UNION ALL SELECT m.id, x.start_time FROM live_members m JOIN live_meetings x ON x.owner_email = m.email
        UNION ALL SELECT actor_id, occurred_at FROM live_activities WHERE actor_id IS NOT NULL))
      WHERE julianday(at) - julianday(before) > 28`,
  },
]
