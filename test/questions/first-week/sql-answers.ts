/**
 * Questions of a first week that are no file of `drizzle/questions`, as statements on the tables and views for reports. They
 * answer some of the columns: those that a leader would read first.
 */
export const SQL_ANSWERS: Readonly<Record<string, string>> = {
  'win-rate': `
      SELECT 'pipeline' AS by, d.pipeline_id AS id, sum(CASE WHEN d.outcome = 'won' THEN 1 ELSE 0 END) AS won,
        sum(CASE WHEN d.outcome = 'lost' THEN 1 ELSE 0 END) AS lost,
        sum(CASE WHEN d.outcome = 'won' THEN d.amount_reporting END) AS won_eur,
        sum(CASE WHEN d.outcome = 'lost' THEN d.amount_reporting END) AS lost_eur,
        sum(CASE WHEN d.outcome IN ('closed', 'unknown') THEN 1 ELSE 0 END) AS outcome_unknown
      FROM deals d JOIN periods p ON p.period = 'last 365 days' AND d.closed_day >= p.from_day
        AND d.closed_day < p.to_day
      GROUP BY d.pipeline_id`,
  'commit-this-quarter': `
      SELECT p.from_day, sum(CASE WHEN d.outcome = 'won' AND d.closed_day >= p.from_day
        AND d.closed_day < p.to_day THEN 1 ELSE 0 END) AS won,
        sum(CASE WHEN d.outcome = 'won' AND d.closed_day >= p.from_day
        AND d.closed_day < p.to_day THEN d.amount_reporting END) AS won_eur,
        sum(CASE WHEN d.outcome = 'open' AND d.forecast_category = 'Commit' AND d.close_date >= p.from_day
        AND d.close_date < p.to_day THEN 1 ELSE 0 END) AS "commit",
        sum(CASE WHEN d.outcome = 'open' AND d.forecast_category = 'Commit' AND d.close_date >= p.from_day
        AND d.close_date < p.to_day THEN d.amount_reporting END) AS commit_eur,
        sum(CASE WHEN d.outcome = 'open' AND d.forecast_category = 'Commit'
        AND d.close_date IS NULL THEN 1 ELSE 0 END) AS commit_without_date
      FROM periods p CROSS JOIN deals d WHERE p.period IN ('last fiscal quarter',
        'this fiscal quarter') GROUP BY p.from_day`,
  'cycle-time': `
      SELECT d.outcome, count(*) AS deals,
        avg(CASE WHEN d.closed_day >= d.created_day THEN e.day_number - b.day_number END) AS mean_days,
        count(*) - count(CASE WHEN d.closed_day >= d.created_day THEN 1 END) AS without_time
      FROM periods p JOIN deals d ON d.closed_day >= p.from_day AND d.closed_day < p.to_day
      LEFT JOIN calendar b ON b.day = d.created_day LEFT JOIN calendar e ON e.day = d.closed_day
      WHERE p.period = 'last 365 days' AND d.outcome IN ('won', 'lost') GROUP BY d.outcome`,
  'deals-with-too-few-people': `
      SELECT d.deal_id, d.deal, d.owner_id, d.owner, d.amount_reporting AS amount_eur,
        count(DISTINCT r.party_id) AS engaged_people
      FROM periods p CROSS JOIN deals d LEFT JOIN record_people r ON r.object = 'deal'
        AND r.record_id = d.deal_id AND r.side = 'theirs'
        AND r.role IN ('FROM', 'attendee', 'owner') AND r.day >= p.from_day AND r.day < p.to_day
      WHERE p.period = 'last 90 days' AND d.outcome = 'open' GROUP BY d.deal_id, d.deal, d.owner_id, d.owner,
        d.amount_reporting HAVING count(DISTINCT r.party_id) < 2`,
  'deals-postponed-again': `
      SELECT d.deal_id, d.deal, d.owner_id, d.owner, d.slips AS times_later, d.close_date FROM deal_facts d
        WHERE d.outcome = 'open' AND d.slips >= 2`,
  'deals-of-leavers': `
      SELECT d.deal_id, d.deal, d.owner_id, d.owner, d.amount_reporting AS amount_eur FROM deals d
        WHERE d.outcome = 'open' AND d.owner_state = 'left'`,
  'reply-time': `
      SELECT m.id AS member_id, m.name AS member, sum(q.is_counted) AS replies,
        avg(CASE WHEN q.is_counted = 1 THEN q.work_hours END) AS mean_hours,
        max(CASE WHEN q.is_counted = 1 THEN q.work_hours END) AS slowest_hours
      FROM periods p JOIN mail_questions q ON q.side = 'theirs' JOIN conversations a ON a.kind = 'mail'
        AND a.conversation_id = q.answered_mail_id AND a.day >= p.from_day AND a.day < p.to_day
      JOIN people c ON c.person_id = q.person_id JOIN parties t ON t.party_id = c.party_id
        AND (t.contact_id IS NOT NULL OR t.company_id IS NOT NULL)
      LEFT JOIN people s ON s.person_id = a.person_id LEFT JOIN members m ON m.id = s.member_id
        AND s.is_member_now = 1
      WHERE p.period = 'last 90 days' GROUP BY m.id, m.name`,
  'customers-waiting-now': `
      SELECT q.asked_mail_id AS mail_id, q.person_id AS address, c.contact_id, o.company,
        q.work_hours AS working_hours
      FROM periods p JOIN mail_questions q ON q.day >= p.from_day AND q.day < p.to_day
        JOIN people c ON c.person_id = q.person_id
      JOIN parties t ON t.party_id = c.party_id AND (t.contact_id IS NOT NULL OR t.company_id IS NOT NULL) LEFT
        JOIN companies o ON o.company_id = t.company_id
      WHERE p.period = 'last 30 days' AND q.side = 'theirs' AND q.answered_at IS NULL AND q.is_counted = 1`,
  'opted-out-written-to': `
      SELECT k.contact_id, k.contact, k.company, count(DISTINCT c.conversation_id) AS mails,
        count(DISTINCT CASE WHEN c.is_group_email = 1 THEN c.conversation_id END) AS group_mails,
        max(c.day) AS last_day
      FROM periods p JOIN conversations c ON c.kind = 'mail' AND c.side = 'ours' AND c.day >= p.from_day
        AND c.day < p.to_day
      JOIN conversation_people r ON r.kind = 'mail' AND r.conversation_id = c.conversation_id
        AND r.role <> 'FROM' JOIN contacts k ON k.contact_id = r.contact_id AND k.is_opted_out = 1
      WHERE p.period = 'last 90 days' GROUP BY k.contact_id, k.contact, k.company`,
  'account-health': `
      SELECT c.company_id, c.company, max(r.last_two_way_day) AS last_two_way_day,
        max(p.today_number) - max(d.day_number) AS days_since
      FROM periods p CROSS JOIN companies c LEFT JOIN record_activity r ON r.object = 'company'
        AND r.record_id = c.company_id LEFT JOIN calendar d ON d.day = r.last_two_way_day
      WHERE p.period = 'this week' AND coalesce(c.domain, '') <> 'lakeside-foods-1.example' GROUP BY c.company_id,
        c.company`,
  'renewals-ahead': `
      SELECT d.deal_id, d.deal, d.company, d.stage, d.currency, d.amount, d.amount_reporting AS amount_eur,
        d.close_date, d.owner_id, d.owner_state
      FROM periods p JOIN deals d ON d.pipeline_kind = 'renewal' AND d.outcome = 'open' LEFT
        JOIN calendar c ON c.day = d.close_date
      WHERE p.period = 'next fiscal quarter' AND (d.close_date IS NULL OR (d.close_date >= p.from_day
        AND c.fiscal_quarter IN (SELECT q.fiscal_quarter FROM calendar q
        WHERE q.day >= p.from_day ORDER BY q.day LIMIT 180)))`,
  'new-people-at-known-accounts': `
      WITH seen AS (SELECT r.company_id, r.party_id, r.contact_id, min(r.day) AS first_day FROM conversation_people r
        JOIN conversations c ON c.kind = r.kind AND c.conversation_id = r.conversation_id
        WHERE r.side = 'theirs' AND (r.kind = 'meeting' OR r.role = 'FROM'
        OR c.is_group_email = 0) GROUP BY r.company_id, r.party_id, r.contact_id)
      SELECT s.company_id, c.company, s.contact_id, s.first_day FROM periods p
        JOIN seen s ON s.first_day >= p.from_day JOIN companies c ON c.company_id = s.company_id
      WHERE p.period = 'last 30 days' AND s.company_id IN (SELECT o.company_id FROM seen o
        WHERE o.first_day < p.from_day)`,
  'meetings-of-leavers': `
      SELECT c.person_id AS address, count(DISTINCT c.conversation_id) AS meetings,
        count(DISTINCT r.party_id) AS people, max(c.day) AS last_day
      FROM calendar t JOIN conversations c ON c.kind = 'meeting' AND c.is_external = 1
        JOIN people o ON o.person_id = c.person_id AND o.is_member_now = 0
      JOIN calendar d ON d.day = c.day AND d.day_number > t.day_number - 180 AND d.day_number <= t.day_number
      JOIN conversation_people r ON r.kind = 'meeting' AND r.conversation_id = c.conversation_id AND r.side = 'theirs'
      WHERE t.day = (SELECT today FROM periods WHERE period = 'this week') GROUP BY c.person_id`,
  'talk-ratio': `
      SELECT r.member_id, count(*) AS meetings, avg(r.speaker_ratio) AS mean_share,
        count(*) - count(r.speaker_ratio) AS without_share
      FROM periods p JOIN conversations c ON c.kind = 'meeting' AND c.is_external = 1 AND c.day >= p.from_day
        AND c.day < p.to_day
      JOIN conversation_people r ON r.kind = 'meeting' AND r.conversation_id = c.conversation_id
        AND r.side = 'ours' JOIN people h ON h.person_id = r.person_id AND h.is_member_now = 1
      WHERE p.period = 'last 90 days' GROUP BY r.member_id`,
  'overdue-action-items': `
      SELECT p.person_id AS address, p.owner_state, sum(p.is_overdue) AS overdue,
        min(CASE WHEN p.is_overdue = 1 THEN p.due_day END) AS oldest_due_day,
        count(*) - count(p.due_day) AS without_due_date
      FROM promises p WHERE p.is_completed = 0 AND (p.is_overdue = 1 OR p.due_day IS NULL) GROUP BY p.person_id,
        p.owner_state`,
  'pipeline-moved-this-week': `
      SELECT n.deal_id, CASE WHEN b.deal_id IS NULL THEN 1 ELSE 0 END AS is_new, b.stage AS stage_before,
        n.stage AS stage_after, b.close_date AS close_date_before, n.close_date AS close_date_after
      FROM periods w JOIN deal_versions n ON n.to_at IS NULL JOIN deals d ON d.deal_id = n.deal_id
      LEFT JOIN deal_versions b ON b.deal_id = n.deal_id AND b.from_day < w.from_day AND (b.to_day >= w.from_day
        OR b.to_day IS NULL)
      WHERE w.period = 'this week' AND ((b.deal_id IS NULL AND n.outcome = 'open') OR ((b.outcome = 'open'
        OR n.outcome = 'open') AND (b.stage_id IS NOT n.stage_id OR b.amount IS NOT n.amount
        OR b.close_date IS NOT n.close_date)))`,
}
