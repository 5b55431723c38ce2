import { expect, test } from 'vitest'
import { type CopyText, planTexts } from '../../src/store/rows/merge/texts.ts'

/**
 * Copies in canonical order, as `sender:state`. A state with `*` is that of the copy whose text the e-mail has, one with
 * `+` that of a copy that has a text itself, and one with `!` that of a copy whose read has failed.
 */
interface Planned {
  from?: number
  due?: number[]
  reset?: number[]
  apart?: number[]
}

const CASES: readonly (readonly [copies: string, plan: Planned])[] = [
  ['x:pending', { due: [1] }],
  ['x:present*', { from: 1 }],
  ['x:present', { due: [1], reset: [1] }],
  ['x:empty x:pending x:pending', { due: [2] }],
  ['x:gone x:present* x:pending', { from: 2 }],
  ['x:pending x:present*', { from: 2, due: [1] }],
  ['x:empty x:empty', {}],
  // A copy that was tried in vain
  ['x:pending! x:pending x:pending', { due: [1, 2] }],
  ['x:pending! x:pending! x:pending', { due: [1, 2, 3] }],
  ['x:pending! x:empty x:pending', { due: [1, 3] }],
  ['x:pending! x:present* x:pending', { from: 2, due: [1] }],
  ['x:present* x:pending!', { from: 1 }],
  ['x:pending x:pending!', { due: [1] }],
  ['x:pending! y:pending x:pending', { due: [1, 3, 2], apart: [2] }],
  // Another sender
  ['x:pending y:pending', { due: [1, 2], apart: [2] }],
  ['x:present* y:pending z:pending', { from: 1, due: [2, 3], apart: [2, 3] }],
  ['x:present* y:present+ z:empty', { from: 1, apart: [2, 3] }],
  ['x:present* y:present', { from: 1, due: [2], reset: [2], apart: [2] }],
  ['x:empty y:present*', { apart: [2] }],
  ['x:empty y:pending x:pending', { due: [3, 2], apart: [2] }],
  // The sender is that of the first copy that has one; a copy without one has that of its e-mail.
  ['-:pending y:pending z:pending', { due: [1, 3], apart: [3] }],
  ['-:empty y:present* -:pending', { from: 2 }],
  ['-:pending -:pending', { due: [1] }],
  // The first copy is gone, and another has become the first.
  ['y:present+ z:present+', { from: 1, apart: [2] }],
  ['y:present+', { from: 1 }],
]

test.each(CASES)('of the copies %s the plan is %j', (copies, plan) => {
  let source: number | null = null
  const given = copies.split(' ').map((text, place): CopyText => {
    const [, sender = '', state = '', mark = ''] = /^(.):(\w+)([*+!]?)$/.exec(text) ?? []
    if (mark === '*') source = place + 1
    return {
      _id: place + 1,
      id: `copy ${place}`,
      text_state: state,
      has_text: mark === '+' ? 1 : 0,
      sender: sender === '-' ? undefined : sender,
      isTried: mark === '!',
    }
  })
  const { from, due, reset, apart } = planTexts(given, source)
  const found = { from, due: [...due], reset: [...reset], apart: [...apart] }
  expect(found).toEqual({ from: null, due: [], reset: [], apart: [], ...plan })
})
