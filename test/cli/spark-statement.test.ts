import { expect, test } from 'vitest'
import { sparkStatement } from '../../src/commands/schema/engine-dialects.ts'

test('a statement whose quotes are closed stays as it is', () => {
  const sql = "SELECT t.`odd` AS `a \"b\" 'c'`\nFROM t\nWHERE o = 'it''s; -- /*' -- it's\n"
  expect(sparkStatement(sql)).toBe(`${sql};`)
})

test.each([
  ["it's", " -- '\n;"],
  ['5" screen', ' -- "\n;'],
  [`5" isn't`, ' -- "\n;'],
  ["it\\'s", ';'],
  ["it\\\\'s", " -- '\n;"],
  ["-- isn't", ';'],
  ['a/*b', ' -- */\n;'],
  ['a/*b/*c', ' -- */*/\n;'],
  ['a/*b*/c', ';'],
])('what the name %s leaves open is closed at the end of the statement', (name, end) => {
  const sql = `SELECT a AS \`${name}\`\nFROM t`
  expect(sparkStatement(sql)).toBe(sql + end)
})

test('a statement that ends in a comment gets a line for its semicolon', () => {
  expect(sparkStatement('SELECT a FROM `x -- y`')).toBe('SELECT a FROM `x -- y`\n;')
})

test('a semicolon in a name has a backslash unless the command line takes it for a part of a text', () => {
  expect(sparkStatement('SELECT `a;b` FROM t')).toBe('SELECT `a\\;b` FROM t;')
  expect(sparkStatement("SELECT `a';b` FROM t")).toBe("SELECT `a';b` FROM t -- '\n;")
})
