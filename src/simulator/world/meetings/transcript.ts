import { at, createDraw } from '../../base/random.ts'
import { quote, quoteOrNull, SALT } from '../../base/scene.ts'
import { spokenLine } from '../../content/meetings.ts'
import { type Surroundings, speakersOf } from './meeting.ts'

/** The entries as a JSON array, as text: a transcript has thousands of words. */
export function transcriptOf(around: Surroundings, index: number): string {
  const { seed, sizes } = around.scene
  const draw = createDraw(seed, SALT.transcript, index)
  const voices = speakersOf(around, index)
  const least = Math.ceil(sizes.transcriptTurns / 4)
  const turns = Math.max(1, least + draw.below(Math.ceil((sizes.transcriptTurns * 3) / 4)))
  const entries: string[] = []
  let clock = 1.5
  for (let turn = 0; turn < turns; turn++) {
    const number = turn % 2 === 0 ? 0 : draw.below(voices.length)
    const { name, contact } = at(voices, number)
    const text = spokenLine(draw)
    const { words, end } = spokenWords(text, clock)
    const contactId = around.customers.originalContactId(contact)
    entries.push(
      `{"speaker_id":"speaker_${number}","speaker_name":${quote(name)},"contact_id":${quoteOrNull(contactId)}` +
        `,"text":${quote(text)},"elapsed_seconds":${clock.toFixed(2)},"words":[${words.join(',')}]}`,
    )
    clock = end + 0.6
  }
  return `[${entries.join(',')}]`
}

/** The words of a line with their times in seconds, and when the line ends. */
function spokenWords(line: string, begin: number): { words: string[]; end: number } {
  let clock = begin
  const words = line.split(' ').map(word => {
    const start = clock
    const end = start + 0.12 + word.length * 0.05
    clock = end + 0.04
    return `{"text":${quote(word)},"start_time":${start.toFixed(2)},"end_time":${end.toFixed(2)}}`
  })
  return { words, end: clock }
}
