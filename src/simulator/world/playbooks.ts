import { answerTo, PLAYBOOK_NAMES, QUESTIONS } from '../content/playbooks.ts'
import { createIds } from '../ids.ts'
import { formatInstant, MINUTE } from '../instants.ts'
import { createItems, type Items } from '../items.ts'
import { at, createDraw, mix, mixBelow } from '../random.ts'
import { SALT, type Scene, spread } from './scene.ts'

export interface Playbooks {
  items: Items
  listJson(index: number): string
  json(index: number): string
  settingJson(index: number): string
  /** Playbooks that were run in a meeting, including those that are now inactive or deleted. */
  runsIn(meeting: number): readonly number[]
  /** The latest result of a playbook in a meeting. `version` counts its later runs. */
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
  const resultIds = createIds(seed, SALT.result, 'uuid')
  const answerIds = createIds(seed, SALT.result + 1, 'uuid')

  const name = (index: number, revision: number): string => {
    return `${at(PLAYBOOK_NAMES, index)}${index >= PLAYBOOK_NAMES.length ? ` ${index}` : ''}${revision > 0 ? ` v${revision + 1}` : ''}`
  }
  const updatedAt = (index: number): number =>
    items.editedAt(index) ??
    items.addedAt(index) ??
    Math.floor(spread(scene, mixBelow(seed, SALT.playbook + 2, index, 90) / 100))
  const head = (index: number) => ({
    id: items.ids.of(index),
    name: name(index, items.revision(index)),
    active: items.isPublished(index),
    updated_at: formatInstant(updatedAt(index), index),
  })
  /** Question numbers of a playbook; an edit adds one. */
  const questions = (index: number, revision: number): number[] => {
    const count = 3 + mixBelow(seed, SALT.playbook + 3, index, 4) + revision
    return Array.from({ length: count }, (_, n) => n)
  }
  const question = (index: number, number: number) => at(QUESTIONS, index + number)

  return {
    items,
    listJson: index => JSON.stringify(head(index)),
    json: index =>
      JSON.stringify({
        ...head(index),
        talk_points: questions(index, items.revision(index)).map(number => ({
          id: pointIds.of(index * 64 + number),
          question: question(index, number).question,
          description: number % 3 === 0 ? null : 'Answer in one sentence, in the language of the meeting.',
          order: number + 1,
          target: number % 4 === 3 ? 'INTERNAL' : 'CUSTOMER',
          data_type: number % 5 === 4 ? 'NUMBER' : 'TEXT',
          format_style: number % 2 === 0 ? 'PLAIN' : 'BULLETS',
          character_limit: number % 3 === 1 ? null : 400,
        })),
      }),
    settingJson: index =>
      JSON.stringify({
        playbook_id: items.ids.of(index),
        enabled: index % 4 !== 3,
        conditions: [
          {
            field: 'meeting_type_name',
            operator: 'IN',
            values: ['Sales', 'Customer success'].slice(index % 2),
          },
          ...(items.revision(index) > 0
            ? [{ field: 'duration', operator: 'GTE', values: [600 * items.revision(index)] }]
            : []),
        ],
      }),
    runsIn: meeting => {
      if (sizes.playbooks === 0) return []
      const first = mixBelow(seed, SALT.result + 2, meeting, sizes.playbooks)
      const count = Math.min(sizes.playbooks, mixBelow(seed, SALT.result + 3, meeting, 4))
      return Array.from({ length: count }, (_, n) => (first + n) % sizes.playbooks)
    },
    resultJson: ({ meeting, playbook, version, endedAt }) => {
      const key = (meeting * 64 + playbook) * 16 + (version % 16)
      const made = formatInstant(endedAt + MINUTE * (5 + version), mix(seed, SALT.result + 4, key))
      return JSON.stringify({
        id: resultIds.of(key),
        playbook_id: items.ids.of(playbook),
        // A later edit of the playbook does not change its results.
        playbook_name: name(playbook, 0),
        created_at: made,
        talk_point_results: questions(playbook, 0).map(number => ({
          id: answerIds.of((mix(seed, SALT.result + 5, key) ^ number) >>> 0),
          talk_point_id: pointIds.of(playbook * 64 + number),
          question: question(playbook, number).question,
          answer: answerTo(createDraw(seed, SALT.result + 6 + number, key), question(playbook, number)),
          created_at: made,
        })),
      })
    },
  }
}
