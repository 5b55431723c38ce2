import { expect, test } from 'vitest'
import { temporaryStore } from './temporary-store.ts'

test('a round that is rolled back leaves the current round as it was', () => {
  const { atomically, rounds } = temporaryStore()
  atomically(() => rounds.begin('members', 'timed'))
  const failing = () =>
    atomically(() => {
      rounds.begin('members', 'timed', { confirming: true })
      expect([rounds.number('members'), rounds.isConfirming('members')]).toEqual([2, true])
      throw new Error('the disk is full')
    })
  expect(failing).toThrow('the disk is full')
  expect([rounds.number('members'), rounds.isConfirming('members')]).toEqual([1, false])
})
