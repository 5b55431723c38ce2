import { resource } from '../declare/resource.ts'
import { boolean, child, entity, json, NOT_STATED, own, position, real, text } from '../declare/table.ts'

const hints = child('bot_transcription_hints', {
  content: true,
  about: 'Words that the transcription should recognise.',
  list: 'transcription_hints',
  key: ['position'],
  columns: {
    position: position(),
    hint: text('The word.'),
    intensity: real('How strongly the transcription should expect the word.', { unit: NOT_STATED }),
    language: text('Language code.'),
    pronunciations: json('Pronunciations of the word.'),
    replacements: json(
      'Replacements. The API does not state whether they replace the word or it replaces them.',
    ),
  },
})

const bot = entity('bot_definition', {
  about: 'The AI bot of the workspace.',
  key: ['id'],
  columns: {
    id: own('integer', 'Always 1.', { example: '1' }),
    name: text('Name of the bot.', { content: true }),
    message_on_join_active: boolean('1 when the bot posts a message on joining a meeting.', {
      from: 'message_on_join.active',
    }),
    message_on_join_frequency: text('How often it posts the message. The API does not state its values.', {
      isEnumerated: true,
      from: 'message_on_join.frequency',
    }),
    message_on_join_message: text('The message.', { from: 'message_on_join.message', content: true }),
  },
  children: [hints],
})

export const botDefinitionResource = resource({
  name: 'bot_definition',
  about: 'The AI bot and its transcription hints',
  area: 'service',
  parents: [],
  tables: [bot],
  feeds: {
    read: {
      mode: 'singleton',
      read: { path: '/v1/bot-definition', placement: 'data' },
      table: 'bot_definition',
      stores: 'row',
      expected: { 403: 'unavailable', 404: 'unavailable' },
    },
  },
  status: { table: 'bot_definition' },
  example: {
    read: {
      name: 'Notetaker',
      transcription_hints: [
        {
          hint: 'parley',
          intensity: 0.8,
          language: 'en',
          pronunciations: ['par-lee'],
          replacements: ['barley'],
        },
      ],
      message_on_join: { active: true, frequency: 'EVERY_TIME', message: 'I take notes' },
    },
  },
})
