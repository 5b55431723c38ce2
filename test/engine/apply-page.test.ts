import { expect, test } from 'vitest'
import { feedNamed } from '../../src/catalog/feeds.ts'
import { applyPage, type PageSteps } from '../../src/engine/modes/apply-page.ts'
import { startScriptedApi } from '../support/scripted-api.ts'
import { startTrial } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const AT = '2026-01-01T00:00:00.000Z'
const REPLY = { ticket: 1, sentAt: AT, serverSentAt: AT }
const VALUE = { data: [{ id: 'a' }], page_info: { end_cursor: 'end', has_next_page: false } }

/** Applies a page; returns the steps that ran, in their order. */
async function stepsOf(parsed: readonly string[] | undefined) {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  const { context } = await startTimed(api, trial, ['messages'])
  const [segment] = context.store.segments.of('messages.list')
  if (!segment) throw new Error('messages have no segment')
  const ran: string[] = []
  const note = <T>(step: string, value: T): T => {
    ran.push(step)
    return value
  }
  const steps: PageSteps<readonly string[], number, string> = {
    parse: () => note('parse', parsed),
    countOf: rows => rows.length,
    storeRows: page => note(`store ${page.parsed.join()}`, []),
    writeFollowUps: (_, stored) => note(`follow up ${stored.length}`, undefined),
    findMissingRows: () => note('find missing', 7),
    advance: (_, found) => note(`advance with ${found}`, 'advanced'),
  }
  const { feed, ...name } = feedNamed('messages.list')
  if (feed.mode !== 'timeline') throw new TypeError('messages are no timeline')
  const request = { list: { ...name, feed }, query: {}, segment }
  return { outcome: applyPage(context, request, { value: VALUE, reply: REPLY }, steps), ran }
}

test('a page is parsed, stored, followed up and searched for missing rows before its checkpoint advances', async () => {
  expect(await stepsOf(['row'])).toEqual({
    outcome: 'advanced',
    ran: ['parse', 'store row', 'follow up 0', 'find missing', 'advance with 7'],
  })
})

test('nothing of a page that must not be stored changes the warehouse', async () => {
  expect(await stepsOf(undefined)).toEqual({ outcome: undefined, ran: ['parse'] })
})
