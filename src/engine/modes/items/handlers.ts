import type { ItemFeed } from '../../../declare/resource.ts'
import { settingAnswer } from './execution-setting.ts'
import type { ItemHandler } from './item-handler.ts'
import { bodyAnswer } from './message-body.ts'
import { resultsAnswer } from './playbook-results.ts'
import { linksAnswer } from './record-links.ts'
import { transcriptAnswer } from './transcript.ts'
import { rowAnswer } from './whole-record.ts'

/** The handler for each kind of item. */
export const ITEM_ANSWERS: Readonly<Record<ItemFeed['stores'], ItemHandler>> = {
  row: rowAnswer,
  body: bodyAnswer,
  transcript: transcriptAnswer,
  results: resultsAnswer,
  setting: settingAnswer,
  links: linksAnswer,
}
