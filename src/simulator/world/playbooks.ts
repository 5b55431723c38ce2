import { createIds, type Ids } from '../base/ids.ts'
import { formatInstant, MINUTE } from '../base/instants.ts'
import { createItems, type Items } from '../base/items.ts'
import { at, createDraw, mix, mixBelow } from '../base/random.ts'
import { SALT, type Scene, spread } from '../base/scene.ts'
import { answerTo, PLAYBOOK_NAMES, QUESTIONS } from '../content/playbooks.ts'

export interface Playbooks {
  items: Items
  listJson(index: number): string
  json(index: number): string
  settingJson(index: number): string
  /** Playbooks that were run in a meeting, including those that are now inactive or deleted. */
  runsIn(meeting: number): readonly number[]
  /** The latest result of a playbook in a meeting. `version` counts the later runs. */
  resultJson(run: PlaybookRun): string
}

export interface PlaybookRun {
  meeting: number
  playbook: number
  version: number
  /** Microseconds at which the meeting ended. */
  endedAt: number
}

export function createPlaybooks(scene: Scene): Playbooks {
  const { seed, sizes } = scene
  const items = createItems({
    seed,
    salt: SALT.playbook,
    shape: 'hex24',
    count: sizes.playbooks,
    initial: index => (index % 3 === 2 ? 'hidden' : 'published'),
  })
  const pointIds = createIds(seed, SALT.playbook + 1, 'hex16')
  const updatedAt = (index: number): number =>
    items.editedAt(index) ??
    items.addedAt(index) ??
    Math.floor(spread(scene, mixBelow(seed, SALT.playbook + 2, index, 90) / 100))
  const head = (index: number) => ({
    id: items.ids.of(index),
    name: nameOf(index, items.revision(index)),
    active: items.isPublished(index),
    updated_at: formatInstant(updatedAt(index), index),
  })

  return {
    items,
    listJson: index => JSON.stringify(head(index)),
    json: index => {
      const numbers = questionNumbers(scene, index, items.revision(index))
      return JSON.stringify({
        ...head(index),
        talk_points: numbers.map(number => talkPointOf(pointIds, index, number)),
      })
    },
    settingJson: index =>
      JSON.stringify({ playbook_id: items.ids.of(index), ...settingOf(index, items.revision(index)) }),
    runsIn: meeting => {
      if (sizes.playbooks === 0) return []
      const first = mixBelow(seed, SALT.result + 2, meeting, sizes.playbooks)
      const count = Math.min(sizes.playbooks, mixBelow(seed, SALT.result + 3, meeting, 4))
      return Array.from({ length: count }, (_, n) => (first + n) % sizes.playbooks)
    },
    resultJson: run => JSON.stringify(resultOf(scene, items.ids, pointIds, run)),
  }
}

function nameOf(index: number, revision: number): string {
  const number = index >= PLAYBOOK_NAMES.length ? ` ${index}` : ''
  return `${at(PLAYBOOK_NAMES, index)}${number}${revision > 0 ? ` v${revision + 1}` : ''}`
}

/** The numbers of the questions of a playbook, from 0; an edit adds one. */
function questionNumbers({ seed }: Scene, index: number, revision: number): number[] {
  const count = 3 + mixBelow(seed, SALT.playbook + 3, index, 4) + revision
  return Array.from({ length: count }, (_, n) => n)
}

function talkPointOf(pointIds: Ids, index: number, number: number) {
  return {
    id: pointIds.of(index * 64 + number),
    question: at(QUESTIONS, index + number).question,
    description: number % 3 === 0 ? null : 'Answer in one sentence, in the language of the meeting.',
    order: number + 1,
    target: number % 4 === 3 ? 'INTERNAL' : 'CUSTOMER',
    data_type: number % 5 === 4 ? 'NUMBER' : 'TEXT',
    format_style: number % 2 === 0 ? 'PLAIN' : 'BULLETS',
    character_limit: number % 3 === 1 ? null : 400,
  }
}

function settingOf(index: number, revision: number) {
  const types = ['Sales', 'Customer success'].slice(index % 2)
  return {
    enabled: index % 4 !== 3,
    conditions: [
      { field: 'meeting_type_name', operator: 'IN', values: types },
      ...(revision > 0 ? [{ field: 'duration', operator: 'GTE', values: [600 * revision] }] : []),
    ],
  }
}

/** A later edit of the playbook does not change its results. */
function resultOf(scene: Scene, ids: Ids, pointIds: Ids, run: PlaybookRun) {
  const { seed } = scene
  const { meeting, playbook, version, endedAt } = run
  const answerIds = createIds(seed, SALT.result + 1, 'uuid')
  const key = (meeting * 64 + playbook) * 16 + (version % 16)
  const made = formatInstant(endedAt + MINUTE * (5 + version), mix(seed, SALT.result + 4, key))
  return {
    id: createIds(seed, SALT.result, 'uuid').of(key),
    playbook_id: ids.of(playbook),
    playbook_name: nameOf(playbook, 0),
    created_at: made,
    talk_point_results: questionNumbers(scene, playbook, 0).map(number => {
      const question = at(QUESTIONS, playbook + number)
      return {
        id: answerIds.of((mix(seed, SALT.result + 5, key) ^ number) >>> 0),
        talk_point_id: pointIds.of(playbook * 64 + number),
        question: question.question,
        answer: answerTo(createDraw(seed, SALT.result + 6 + number, key), question),
        created_at: made,
      }
    }),
  }
}
