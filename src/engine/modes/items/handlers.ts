import type { ItemFeed } from '../../../catalog/resource.ts'
import { bodyAnswer } from './body.ts'
import type { ItemHandler } from './item-handler.ts'
import { linksAnswer } from './links.ts'
import { resultsAnswer } from './results.ts'
import { rowAnswer } from './row.ts'
import { settingAnswer } from './setting.ts'
import { transcriptAnswer } from './transcript.ts'

/** The handler for each kind of item. */
export const ITEM_ANSWERS: Readonly<Record<ItemFeed['stores'], ItemHandler>> = {
  row: rowAnswer,
  body: bodyAnswer,
  transcript: transcriptAnswer,
  results: resultsAnswer,
  setting: settingAnswer,
  links: linksAnswer,
}
