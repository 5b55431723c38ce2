-- The list of playbooks leaves out inactive ones, but their results stay and their details can be read.
INSERT OR IGNORE INTO `sync_tasks` (`feed`, `key`, `due_at`)
SELECT DISTINCT 'playbooks.detail', `playbook_id`, strftime('%Y-%m-%dT%H:%M:%fZ', 'now') FROM `playbook_results`
WHERE `playbook_id` <> '' AND `_deleted_at` IS NULL AND `playbook_id` NOT IN (SELECT `id` FROM `playbooks`);
