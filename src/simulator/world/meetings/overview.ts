import { createIds } from '../../base/ids.ts'
import { DAY, formatDay } from '../../base/instants.ts'
import { createDraw } from '../../base/random.ts'
import { SALT, type Scene } from '../../base/scene.ts'
import { actionText, chapterItem, chapterTitle } from '../../content/meetings.ts'
import { durationOf, type Meeting } from './meeting.ts'

/** An edit adds an action item and completes the first one. */
export function overviewOf(scene: Scene, { index, revision, endsAt, isOverviewReady }: Meeting) {
  if (!isOverviewReady) return { summaries: [], action_items: [] }
  const draw = createDraw(scene.seed, SALT.meeting + 16, index)
  const ids = createIds(scene.seed, SALT.meeting + 3, 'uuid')
  const length = durationOf(scene, index)
  const chapters = Array.from({ length: 2 + draw.below(4) }, (_, chapter) => ({
    chapter_title: chapterTitle(draw),
    chapter_items: Array.from({ length: 1 + draw.below(4) }, () => ({
      item: chapterItem(draw),
      time: Math.floor((chapter * length) / 6) + draw.below(120),
    })),
  }))
  const actions = Array.from({ length: draw.below(4) + revision }, (_, number) => ({
    id: ids.of(index * 64 + number),
    text: actionText(draw),
    detail: number % 3 === 2 ? null : chapterItem(draw),
    due_date: number % 4 === 3 ? null : formatDay(endsAt + (3 + number) * DAY),
    time: draw.below(length),
    completed: revision > 0 && number === 0 ? true : draw.chance(0.4),
  }))
  return { summaries: chapters, action_items: actions }
}
