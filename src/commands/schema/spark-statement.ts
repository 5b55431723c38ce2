/**
 * An SQL statement as the command line of Spark, `spark-sql`, must find it in a file. It splits the file at semicolons
 * outside quotes and comments, but does not know backticks: an apostrophe in the name of a CRM field would hide every
 * semicolon up to the next apostrophe. So a comment at the end closes what a name has opened, and a semicolon in a name
 * gets a backslash, which the command line removes. Pure.
 * @param sql one statement, without a semicolon at its end
 */
export function sparkStatement(sql: string): string {
  let state: SplitState = { inside: undefined, depth: 0, isEscaped: false }
  let written = ''
  for (let place = 0; place < sql.length; place += 1) {
    const isSplit = sql[place] === ';' && state.inside === undefined
    written += isSplit ? '\\;' : sql[place]
    state = stateAfter(state, sql.slice(Math.max(0, place - 1), place), sql.slice(place, place + 2))
  }
  return `${written}${closing(state)};`
}

/** What the command line takes the next character to be in. */
interface SplitState {
  inside: "'" | '"' | '--' | '/*' | undefined
  /** Of comments in comments. */
  depth: number
  /** After a backslash. */
  isEscaped: boolean
}

/** @param pair the character and the one after it */
function stateAfter({ inside, depth, isEscaped }: SplitState, previous: string, pair: string): SplitState {
  const character = pair.charAt(0)
  const next = { inside, depth, isEscaped: !isEscaped && character === '\\' }
  if (character === "'" || character === '"') {
    if (isEscaped) return next
    if (inside === undefined) return { ...next, inside: character }
    return inside === character ? { ...next, inside: undefined } : next
  }
  if (pair === '--' && inside === undefined) return { ...next, inside: '--' }
  if (character === '\n' && inside === '--' && !isEscaped) return { ...next, inside: undefined }
  const isComment = inside === '/*'
  if (character === '/' && previous === '*' && isComment)
    return { ...next, inside: depth === 1 ? undefined : inside, depth: depth - 1 }
  if (pair === '/*' && (isComment || inside === undefined)) return { ...next, inside: '/*', depth: depth + 1 }
  return next
}

function closing({ inside, depth }: SplitState): string {
  if (inside === undefined) return ''
  if (inside === '--') return '\n'
  return ` -- ${inside === '/*' ? '*/'.repeat(depth) : inside}\n`
}
