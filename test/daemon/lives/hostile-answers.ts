import type { Fault } from '../../../src/simulator/faults/faults.ts'

/** Wrong, failing and odd answers of a service. */

type Answer = Partial<Fault> & Pick<Fault, 'kind'>

/** Wrong answers of a temporary fault, each of which may look like a right one. */
export const WRONG_ANSWERS: readonly [Answer, ...Answer[]] = [
  { kind: 'status', status: 404 },
  { kind: 'status', status: 403 },
  { kind: 'status', status: 410 },
  { kind: 'status', status: 500 },
  { kind: 'status', status: 503, retryAfter: 1 },
  { kind: 'empty' },
  { kind: 'null-data' },
]

/** The ways in which every answer for one item can fail. */
export const FAILURES: readonly [Answer, ...Answer[]] = [
  { kind: 'status', status: 404 },
  { kind: 'status', status: 403 },
  { kind: 'status', status: 410 },
  { kind: 'status', status: 500 },
  { kind: 'reset' },
  { kind: 'truncate' },
]

const DEEP = `${'['.repeat(10_000)}{n}${']'.repeat(10_000)}`

/** Odd answers that change with every read. */
export const ODD_ANSWERS: readonly [Fault, ...Fault[]] = [
  { kind: 'rewrite', from: '"(id|meeting_id)":', to: `"deep":${DEEP},"$1":` },
  { kind: 'rewrite', from: '"(id|meeting_id)":', to: '"unsteady":{n},"$1":' },
  { kind: 'rewrite', route: '/v2/messages', from: '"id":', to: '"only in the list":{n},"id":' },
  {
    kind: 'rewrite',
    route: '/v2/messages/{messageId}',
    from: '"is_internal":false',
    to: '"is_internal":true',
  },
  { kind: 'rewrite', from: '"(name|title|subject)":"', to: '"$1":"\\ud83d' },
  {
    kind: 'rewrite',
    route: '/v1/meetings',
    from: '"data":\\[',
    to: '"data":[{"meeting_id":"half \\ud83d"},',
  },
  { kind: 'rewrite', route: '/v1/playbooks', from: '"data":\\[', to: '"data":[{"id":"half \\ud83d"},' },
  { kind: 'rewrite', from: '"data":\\[\\{', to: '"data":["no item",null,[],7,{' },
  { kind: 'rewrite', from: '"(received_at|occurred_at)":"[^"]*"', to: '"$1":null', probability: 0.3 },
  { kind: 'rewrite', from: ':59(\\.\\d+)?Z"', to: ':60$1Z"' },
  { kind: 'rewrite', from: '"total_pages":\\d+', to: '"total_pages":1' },
]

/** A fault as a readable line. */
export const shown = (fault: Fault): string => JSON.stringify(fault).replace(DEEP, '[[…]]')
