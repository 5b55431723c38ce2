import { link, requested, resource } from '../resource.ts'

const collectionMeetings = link('collection_meetings', {
  about: 'Which meetings a collection holds, as the meeting list filtered by `collection_id` tells.',
  key: ['collection_id', 'meeting_id'],
  columns: {
    collection_id: requested('Collection.', {
      refersTo: ['collections.id'],
      apiField: 'collection_id',
      example: 'col_1',
    }),
    meeting_id: requested('Meeting.', {
      refersTo: ['meetings.id'],
      apiField: 'meeting_id',
      example: 'mtg_1',
    }),
  },
  indices: { by_meeting: { on: ['meeting_id'] } },
  livesWith: { table: 'collections', on: { collection_id: 'id' } },
})

export const collectionMeetingsResource = resource({
  name: 'collection_meetings',
  about: 'The meetings of each collection',
  parents: ['collections'],
  tables: [collectionMeetings],
  feeds: {
    list: {
      mode: 'snapshot',
      list: { path: '/v1/meetings', paging: 'any', scopeParameter: 'collection_id' },
      table: 'collection_meetings',
      lists: 'rows',
      keyFields: ['meeting_id', 'id'],
      scope: { table: 'collections', column: 'id' },
      evidence: { by: 'list' },
      // A collection that went away while its meetings were being asked for.
      expected: { 404: 'absent' },
    },
  },
  status: { table: 'collection_meetings' },
  example: { list: { meeting_id: 'mtg_1' } },
})
