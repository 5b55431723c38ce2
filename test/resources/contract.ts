/**
 * What the warehouse contract promises, written down by hand: names that start with `*` are in bold there, which
 * means that they are the key.
 */
export const ENTITY_TABLES: Readonly<Record<string, string>> = {
  members: '*id name email role',
  teams: '*id name',
  collections: '*id name description visibility created_at updated_at',
  activities: '*id type source_type source_id occurred_at created_via actor_kind actor_id',
  message_copies:
    '*id header_message_id thread_id subject received_at is_internal is_group_email text_state mail_id text',
  messages:
    '*header_message_id id copy_count thread_id subject received_at is_internal is_group_email text text_state',
  meetings:
    '*id url workspace_id title platform start_time end_time recording_duration base_type recording_source overview_status crm_type meeting_type_name transcript_languages owner_name owner_email access transcript_state',
  playbooks: '*id name active updated_at execution_setting',
  playbook_results: '*id meeting_id playbook_id playbook_name created_at',
  crm_objects: '*name name_plural label label_plural is_custom is_active table_name',
  crm_records:
    '*object *id visibility fields created_at updated_at created_by_kind created_by_name updated_by_kind updated_by_name',
  access_logs:
    '*id occurred_at operation method route path status_code duration_ms response_size_bytes api_key_suffix completion',
  bot_definition: '*id name message_on_join_active message_on_join_frequency message_on_join_message',
  integrations: '*id document',
}

/** Cut out of a payload. */
export const CHILD_TABLES: Readonly<Record<string, string>> = {
  team_members: '*team_id *member_id',
  activity_links: '*activity_id *context_type *context_id *origin',
  message_copy_participants: '*message_id *position role handle display_name contact_id',
  meeting_owner_teams: '*meeting_id *team_id name',
  meeting_attendees: '*meeting_id *position name email is_workspace_member is_internal contact_id',
  meeting_attendee_teams: '*meeting_id *attendee_position *team_id name',
  meeting_crm_records: '*meeting_id *position record_id record_name record_url record_object_type',
  meeting_related_objects:
    '*meeting_id *position object_type object_id display_name is_internal company_ids crm_record_id crm_record_name crm_record_url crm_record_object_type',
  meeting_speakers: '*meeting_id *position speaker_name speaker_ratio',
  meeting_chapters: '*meeting_id *position title',
  meeting_chapter_items: '*meeting_id *chapter_position *position item time',
  meeting_action_items: '*meeting_id *id position text detail due_date time completed',
  transcript_entries: '*meeting_id *position speaker_id speaker_name contact_id text elapsed_seconds words',
  playbook_talk_points:
    '*playbook_id *id question description order target data_type format_style character_limit',
  talk_point_results: '*playbook_result_id *id talk_point_id question answer created_at',
  crm_fields:
    '*object *name position label type is_nullable is_unique is_custom is_active options relation_type relation_target_object relation_target_resource column_name',
  bot_transcription_hints: '*position hint intensity language pronunciations replacements',
}

/** Tables that belong to no entity table: links with a separate list, merged participants, observed changes. */
export const LIST_TABLES: Readonly<Record<string, string>> = {
  message_participants: '*header_message_id *role *handle display_name contact_id',
  collection_meetings: '*collection_id *meeting_id',
  crm_record_links: '*object *record_id *related_object *related_id',
  crm_record_changes: '*object *record_id *field *observed_at old_value new_value',
}

export const VIEWS: Readonly<Record<string, string>> = {
  transcript_words: 'meeting_id entry_position position text start_time end_time',
  sync_status:
    'resource state reason rows_live rows_deleted newest_at fresh_as_of complete_as_of backfill_done backfill_total pending_tasks rejected last_success_at next_run_at',
  sync_coverage: 'resource from_at to_at listed_at rows_live bodies_present bodies_pending',
}

export const SYNC_TABLES: Readonly<Record<string, string>> = {
  sync_runs:
    'id resource lane started_at ended_at outcome requests throttled rows_read rows_changed rows_deleted error',
  sync_rejects: 'id resource item reason first_seen_at last_seen_at resolved_at',
}

export const RESOURCES =
  'members teams collections collection_meetings activities messages message_bodies meetings transcripts playbook_results playbooks crm_objects crm_records crm_record_links access_logs bot_definition integrations'.split(
    ' ',
  )

/** Columns whose values are timestamps, by their names. */
export const TIMESTAMP = /(_at|_time|^_first_seen_at|^_synced_at|^_changed_at|^_deleted_at)$/

export interface PromisedTable {
  columns: string[]
  key: string[]
}

export function promised(line: string): PromisedTable {
  const words = line.split(' ')
  return {
    columns: words.map(word => word.replace('*', '')),
    key: words.filter(word => word.startsWith('*')).map(word => word.slice(1)),
  }
}

/** The tables and views for reports, with their columns in order. */
export const REPORT_TABLES: Readonly<Record<string, string>> = {
  deals:
    'deal_id deal company_id company pipeline_id pipeline pipeline_kind stage_id stage stage_position owner_id owner owner_state amount currency amount_reporting created_day close_date closed_day closed_from days_to_close probability forecast_category deal_type lost_reason next_step outcome open_deals won_deals lost_deals open_amount won_amount lost_amount object',
  deal_facts:
    'deal_id deal company_id company pipeline_id pipeline pipeline_kind stage_id stage stage_position owner_id owner owner_state amount currency amount_reporting created_day close_date closed_day closed_from days_to_close probability forecast_category deal_type lost_reason next_step outcome open_deals won_deals lost_deals open_amount won_amount lost_amount object meetings mails mails_in mails_out engaged_people first_meeting_day last_day last_theirs_day last_two_way_day days_silent slips is_past_close_date days_from_meeting',
  deal_changes:
    'deal_id seen_at day days_later stage_id_before stage_id stage_before stage amount_before amount currency_before currency close_date_before close_date outcome_before outcome',
  companies: 'company_id company domain owner_id owner owner_state object',
  company_facts:
    'company_id company domain owner_id owner owner_state object meetings mails mails_in mails_out engaged_people first_meeting_day last_day last_theirs_day last_two_way_day days_silent days_since_two_way open_deals open_amount unknown_deals withheld_meetings is_partner',
  contacts: 'contact_id contact email company_id company owner_id owner owner_state is_opted_out object',
  contact_facts:
    'contact_id contact email company_id company owner_id owner owner_state is_opted_out object meetings mails mails_in mails_out engaged_people first_meeting_day last_day last_theirs_day last_two_way_day days_silent',
  periods:
    'period from_day to_day previous_from_day previous_to_day today today_number clock_day utc_from utc_to',
  period_days:
    'period days_ago day day_number utc_from utc_to week month quarter year fiscal_quarter fiscal_year weekday is_workday work_from work_to work_hours_before',
  period_coverage: 'period resource complete as_of parts parts_read still_to_read',
  pipelines: 'pipeline_id pipeline kind position is_percent',
  stage_outcomes: 'stage_id stage pipeline_id position probability outcome is_guessed why',
  column_values: 'table_name column_name value rows',
  calendar:
    'day day_number utc_from utc_to week month quarter year fiscal_quarter fiscal_year weekday is_workday work_from work_to work_hours_before',
  deal_versions:
    'deal_id from_at to_at from_day to_day is_last_of_day is_first_read pipeline_id stage_id stage amount currency close_date owner_id forecast_category outcome',
  conversations:
    '_id _thread _is_two_way kind conversation_id happened_at day local_hour title person_id side is_external is_linked is_group_email is_readable minutes',
  people:
    '_id person_id party_id name domain side member_id is_member_now contact_id first_seen_day last_seen_day',
  parties: 'party_id name side member_id contact_id company_id company_how first_seen_day last_seen_day',
  record_activity:
    '_id object record_id meetings mails mails_in mails_out meetings_without_derived mails_without_derived mails_in_without_derived mails_out_without_derived engaged_people first_meeting_day last_day last_theirs_day last_two_way_day',
  record_conversations: 'object record_id kind conversation_id day how',
  conversation_threads: 'conversation_id thread_id',
  conversation_people:
    'kind conversation_id day person_id party_id name side member_id contact_id company_id role is_external is_group_email is_readable wrote_or_spoke speaker_ratio',
  record_people:
    'object record_id kind conversation_id day person_id party_id side contact_id role wrote_or_spoke',
  member_conversations:
    'member_id member kind conversation_id happened_at day role is_external is_group_email is_readable days_since_first talk_percent',
  deal_conversations:
    'deal_id kind conversation_id happened_at day title name is_external is_group_email how',
  talk_ratios:
    'conversation_id happened_at day title is_external owner speakers ours_percent theirs_percent other_percent',
  promises:
    'meeting_id action_item_id promise day due_day is_completed is_overdue person_id owner member_id owner_state',
  playbook_answers:
    'meeting_id playbook_result_id answer_id playbook question answer answer_number state day person_id member_id',
  mail_questions:
    'asked_mail_id thread_id asked_at last_asked_at answered_mail_id answered_at answered_day answered_member_id day subject person_id name contact_id company_id company side is_customer hours work_hours is_counted',
  report_settings: 'name value is_guessed why',
  report_settings_changes: 'name changed_at old_value new_value why',
  member_versions: 'member_id from_at to_at name email is_member',
  team_versions: 'team_id member_id from_at to_at team',
  metrics: 'name label dataset expression filter unit is_additive description caveat',
}
