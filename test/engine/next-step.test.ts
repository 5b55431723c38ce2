import { describe, expect, test } from 'vitest'
import type { HealthCheck, NextStep } from '../../src/api/reach-events.ts'
import {
  decide,
  decideWithoutJob,
  MOST_UNSTORED,
  type PermitUse,
  type SchedulerState,
  type UnusedPermit,
} from '../../src/engine/scheduler/next-step.ts'

const ANY: NextStep = { kind: 'any' }
const TRIAL: NextStep = { kind: 'trial' }
const PAUSE: NextStep = { kind: 'wait', ms: 70 }
const CHECK: HealthCheck = {
  resource: 'teams',
  feed: 'teams.list',
  request: { route: '/v1/teams', path: '/v1/teams' },
}
const CHECKING: NextStep = { kind: 'health-check', check: CHECK }

const CALM: SchedulerState = {
  reach: ANY,
  isSilentForGood: false,
  isFirst: false,
  inFlight: 3,
  unanswered: 3,
}

describe('the next step of the scheduler', () => {
  test.each<[string, Partial<SchedulerState>, ReturnType<typeof decide>]>([
    ['a request is sent while the API answers', {}, { step: 'send' }],
    [
      'nothing is sent while too many answers wait to be stored',
      { inFlight: MOST_UNSTORED + 2, unanswered: 2 },
      { step: 'wait' },
    ],
    [
      'requests in flight without an answer do not count as answers',
      { inFlight: MOST_UNSTORED + 2, unanswered: 3 },
      { step: 'send' },
    ],
    ['the first request of a daemon is sent alone', { isFirst: true, inFlight: 0 }, { step: 'send' }],
    [
      'the second request of a daemon waits for the first answer',
      { isFirst: true, inFlight: 1 },
      { step: 'wait' },
    ],
    ['no request is sent during a pause', { reach: PAUSE, inFlight: 0 }, { step: 'wait', ms: 70 }],
    ['a trial is sent alone', { reach: TRIAL, inFlight: 0 }, { step: 'send' }],
    ['a trial waits for the requests in flight', { reach: TRIAL, inFlight: 1 }, { step: 'wait' }],
    [
      'a health check is sent alone',
      { reach: CHECKING, inFlight: 0 },
      { step: 'health-check', check: CHECK },
    ],
    ['a health check waits for the requests in flight', { reach: CHECKING, inFlight: 1 }, { step: 'wait' }],
    [
      'the run ends when access is lost',
      { reach: { kind: 'lost' } },
      { step: 'end', because: 'lost-access' },
    ],
    [
      'the run ends when the API stays silent',
      { reach: CHECKING, isSilentForGood: true },
      { step: 'end', because: 'silence' },
    ],
  ])('%s', (_, state, decision) => {
    expect(decide({ ...CALM, ...state })).toEqual(decision)
  })
})

const IDLE: UnusedPermit = { inFlight: 0, unanswered: 0, isDueLater: false, isEndless: false }

describe('the use of a permit without a job', () => {
  test.each<[string, Partial<UnusedPermit>, PermitUse]>([
    ['the permit is kept while an answer waits to be stored', { inFlight: 2, unanswered: 1 }, 'keep'],
    ['the permit is given back while all requests wait for answers', { inFlight: 2, unanswered: 2 }, 'wait'],
    ['the permit is given back while a retry is pending', { isDueLater: true }, 'wait'],
    ['a backfill is done when nothing is under way', {}, 'finish'],
    ['a daemon rests when nothing is under way', { isEndless: true }, 'rest'],
  ])('%s', (_, state, decision) => {
    expect(decideWithoutJob({ ...IDLE, ...state })).toBe(decision)
  })
})
