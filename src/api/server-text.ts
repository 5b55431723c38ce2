/**
 * The part of a server's error message that may be logged and shown. The message may quote an e-mail's subject, a
 * person's name or a part of the key. So only words of two fixed lists are kept, and no word between quotation marks.
 * An ellipsis replaces everything else. Pure.
 */

const words = (text: string): readonly string[] => text.trim().split(/\s+/)

/** Words of HTTP, of the API's description and of validation messages. Words that are also first names are left out. */
const TECHNICAL: ReadonlySet<string> = new Set(
  words(`
    accept acceptable accepted access accessible account action active activities activity allowed api archived
    argument array attempts attendees auth authenticate authenticated authentication authorization authorized
    available backend bad body boolean busy character characters client code collection collections companies company
    concurrent conflict connection contact contacts content contract could cursor data database date datetime day days
    deadline deal deals definition deleted denied deprecated disabled down duplicate email empty enabled end endpoint
    entity error errors exceed exceeded exceeds exception exist exists expected expired fail failed failure feature
    field fields filter forbidden format found gateway gone greater header headers hidden hour hours http https id ids
    implemented inactive info insufficient integer internal invalid item items json key large larger least length less
    limit limited limits list log logs long longer lower maintenance malformed many maximum meeting meetings member
    members message messages method minimum minute minutes missing month months most multiple null number object
    objects offline operation order overloaded page pages pagination paging parameter parameters params parse path
    payload pending period permission permissions permitted pipeline plan playbook playbooks position positive
    precondition properties property proxy public query quota range rate reached read readable received record records
    refused regex rejected related relation request requested requests required reset resource resources response
    result results retry revoked route schema scope second seconds security server service session setting settings
    shared short shorter size space span stage start state status stopped string supported suspended syntax team teams
    temporarily temporary text thread throttled throttling time timed timeout timestamp token transcript transcripts
    type unable unauthenticated unauthorized unavailable unexpected unknown unprocessable unpublished unreadable
    unrecognized unsupported upper upstream url user users utc uuid uuids valid validation value values version
    visibility visible wait week weeks window workspace workspaces write wrong zone
  `),
)

/** Words without information. A text that has only these and no technical word is left out as a whole. */
const JOINING: ReadonlySet<string> = new Set(
  words(`
    a after again all an and any are as at be been before being between but by cannot do does each either equal equals
    for from given greater has have if in into is it its later more must neither no none not of off on one only or
    other out outside over per please same should so such than that the their there this to too try twice under until
    up use used using was were when where which while with within without x you your
  `),
)

const QUOTED = /["'`´‘’‚‛“”„‟«»‹›].*["'`´‘’‚‛“”„‟«»‹›]/s
const UNCLOSED_QUOTE = /(?<![\p{L}\p{N}])["'`´‘’‚‛“”„‟«»‹›].*$/su

/** A word with the punctuation around it. No group is repeated: that takes stack for each repetition. */
const TOKEN = /^[([]?([A-Za-z](?:[-_./A-Za-z]*[A-Za-z])?)[)\]]?[.,;:!?]?$/

const LEFT_OUT = '…'

/** Maximum length of the safe text, and of each word in it. */
const MAX_CHARACTERS = 200

/** Only the beginning of a server's text is read, since it may have any length. */
const MAX_READ = 4096

/**
 * @returns the safe part of a server's text, on one line. Empty when the text has no technical word.
 * @param secret the API key. It is removed first, since the key could consist of words of the lists.
 */
export function knownWords(text: string, secret: string): string {
  // The last word is removed, since it may be cut and may be a part of the key.
  const start = text.length > MAX_READ ? text.slice(0, MAX_READ).replace(/(?<!\S)\S*$/, LEFT_OUT) : text
  const redacted = secret === '' ? start : start.replaceAll(secret, LEFT_OUT)
  const tokens = redacted.replace(QUOTED, LEFT_OUT).replace(UNCLOSED_QUOTE, LEFT_OUT).split(/\s+/)
  const safe = tokens.map(token => (isSafeToken(token) ? token : LEFT_OUT))
  if (!safe.some(token => tokenWords(token).some(word => TECHNICAL.has(word)))) return ''
  const line = safe.filter((token, at) => token !== LEFT_OUT || safe[at - 1] !== LEFT_OUT).join(' ')
  return line.length > MAX_CHARACTERS
    ? `${line.slice(0, MAX_CHARACTERS).replace(/ \S*$/, '')} ${LEFT_OUT}`
    : line
}

/** Whether a word that the server sent, such as a field name, may be shown. */
export function isSafeToken(token: string): boolean {
  const parts = tokenWords(token)
  return parts.length > 0 && parts.every(word => TECHNICAL.has(word) || JOINING.has(word))
}

/** Splits tokens such as `X-Api-Key`, `related_id` and `ValidationError` into words. */
function tokenWords(token: string): readonly string[] {
  const [, core = ''] = (token.length <= MAX_CHARACTERS && TOKEN.exec(token)) || []
  const parts = core.split(/[-_./]|(?<=[a-z])(?=[A-Z])/)
  return parts.filter(part => part !== '').map(part => part.toLowerCase())
}
