import { expect, test } from 'vitest'
import { createLiveArea, isRedrawable } from '../../src/terminal/live-area.ts'
import { screen } from './screen.ts'

test('lines are redrawn in place below the log lines', () => {
  const terminal = screen(40, 10)
  const area = createLiveArea(terminal)
  area.draw(['one 1', 'two 1'])
  area.draw(['one 2', 'two 2'])
  area.write('a line of the log\n')
  area.draw(['one 3', 'two 3'])
  expect(terminal.lines()).toEqual(['a line of the log', 'one 3', 'two 3'])
})

test('fewer or shorter lines leave no remains of earlier ones', () => {
  const terminal = screen(40, 10)
  const area = createLiveArea(terminal)
  area.draw(['a long line', 'another', 'a third'])
  area.draw(['short'])
  expect(terminal.lines()).toEqual(['short'])
  area.clear()
  expect(terminal.lines()).toEqual([])
})

test('a narrowed terminal keeps no broken lines', () => {
  const terminal = screen(40, 10)
  const area = createLiveArea(terminal)
  area.write('log\n')
  area.draw(['x'.repeat(30), 'y'.repeat(30)])
  terminal.resize(20)
  area.draw(['x', 'y'])
  expect(terminal.lines()).toEqual(['log', 'x', 'y'])
})

test('each change is a single write, so that no partial change is visible', () => {
  const terminal = screen(40, 10)
  const area = createLiveArea(terminal)
  area.draw(['one', 'two'])
  area.write('log\n')
  area.draw(['three'])
  expect(terminal.writes()).toBe(3)
})

test('only a terminal that can move its cursor gets a live area', () => {
  expect(isRedrawable(screen(80, 24), {})).toBe(true)
  expect(isRedrawable(screen(80, 24), { TERM: 'dumb' })).toBe(false)
  expect(isRedrawable({ write: () => true }, {})).toBe(false)
})
