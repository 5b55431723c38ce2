import { resource } from '../declare/resource.ts'
import { link, requestKey } from '../declare/table.ts'

const collectionMeetings = link('collection_meetings', {
  about: 'The meetings of each collection, from the meeting list filtered by `collection_id`.',
  key: ['collection_id', 'meeting_id'],
  columns: {
    collection_id: requestKey('Collection.', {
      hasIds: true,
      refersTo: ['collections.id'],
      apiField: 'collection_id',
      example: 'col_1',
    }),
    meeting_id: requestKey('Meeting.', {
      hasIds: true,
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
  area: 'meetings',
  parents: ['collections'],
  readAgainWith: 'collections',
  tables: [collectionMeetings],
  feeds: {
    list: {
      mode: 'snapshot',
      list: { path: '/v1/meetings', paging: 'any', scopeParameter: 'collection_id' },
      table: 'collection_meetings',
      lists: 'rows',
      keyFields: ['meeting_id', 'id'],
      scope: { table: 'collections', column: 'id' },
      evidence: { by: 'second-pass' },
      // A 404 may mean that the collection was deleted while its meetings were being read.
      expected: { 404: 'absent' },
    },
  },
  status: { table: 'collection_meetings' },
  example: { list: { meeting_id: 'mtg_1' } },
})
