import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from 'vitest'
import { placeFor, workspace } from '../cli/workspace.ts'
import { until } from '../support/until.ts'
import { column, loaded, runCommand, seen, startDaemon } from './cli-daemon.ts'

describe('the status server of a daemon', () => {
  test('the status server reports liveness, readiness and the same status as parley status --json', async context => {
    const place = placeFor(await workspace(context))
    const daemon = startDaemon(context, place)
    await loaded(place.file)
    expect(await daemon.ask('/livez')).toEqual({ status: 200, body: 'ok\n' })
    expect(await daemon.ask('/readyz')).toEqual({ status: 200, body: 'ok\n' })
    const told = ({ resources }: { resources: { resource: string; rows_live: number }[] }) =>
      resources.map(({ resource, rows_live }) => [resource, rows_live])
    // Between the two requests the daemon may store a change.
    const { own, other } = await until(
      async () => ({
        own: JSON.parse((await daemon.ask('/status')).body),
        other: JSON.parse((await runCommand(place, ['status', '--json'])).stdout),
      }),
      both => isDeepStrictEqual(told(both.own), told(both.other)),
    )
    expect(told(own)).toEqual(told(other))
    expect(Object.keys(own)).toEqual(Object.keys(other))
    expect(own.writer).toEqual(other.writer)
    expect(own.daemon).toMatchObject({ state: 'running' })
  })

  test('the metrics count requests by route, status and lane as the API does', async context => {
    const simulator = await workspace(context)
    const place = placeFor(simulator)
    const daemon = startDaemon(context, place, { PARLEY_SYNC_POLL_SECONDS: '86400' })
    await loaded(place.file)
    const figures = async () => (await daemon.ask('/metrics')).body
    const sum = (text: string, name: string) =>
      [...text.matchAll(new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'gm'))].reduce(
        (all, [, n]) => all + Number(n),
        0,
      )
    const text = await until(
      figures,
      body => sum(body, 'parley_requests_total') === simulator.requests.total(),
    )
    expect(sum(text, 'parley_requests_total')).toBe(simulator.requests.total())
    expect(sum(text, 'parley_lane_requests_total')).toBe(simulator.requests.total())
    expect(text).toMatch(/^parley_requests_total\{route="\/v1\/members",status="200"\} \d+$/m)
    expect(text).toContain('parley_resource_state{resource="activities",state="ok"} 1')
    expect(text).toMatch(/^parley_wal_bytes [1-9]/m)
  })

  test('with a token and a target, the status server is the catalogue of the target', async context => {
    const place = placeFor(await workspace(context))
    const target = join(place.cwd, 'lake')
    const daemon = startDaemon(context, place, {
      PARLEY_HTTP_CATALOGUE_TOKEN: 'a-token-of-the-catalogue',
      PARLEY_PUBLISH_TARGET: target,
      PARLEY_PUBLISH_EVERY: 'never',
    })
    await loaded(place.file)
    const headers = { authorization: 'Bearer a-token-of-the-catalogue' }
    const ask = (path: string) => daemon.ask(`/iceberg/v1/namespaces/parley/${path}`, { headers })
    expect(await ask('tables')).toMatchObject({ status: 503 })
    expect((await runCommand(place, ['publish', target])).status).toBe(0)
    const { body } = await until(
      () => ask('tables/members'),
      ({ status }) => status === 200,
    )
    expect(JSON.parse(body)).toMatchObject({
      'metadata-location': `file://${target}/members/metadata/v1.metadata.json`,
      metadata: { location: `file://${target}/members`, 'current-snapshot-id': 1 },
    })
  })

  test('with http.report and the token, the status server has the report', async context => {
    const place = placeFor(await workspace(context))
    const token = 'a-token-of-the-status-server'
    const headers = { authorization: `Bearer ${token}` }
    const daemon = startDaemon(context, place, { PARLEY_HTTP_TOKEN: token, PARLEY_HTTP_REPORT: 'true' })
    await seen(place.file, 1, 'SELECT count(*) > 0 FROM live_meetings')
    expect((await daemon.ask('/report')).status).toBe(401)
    const { status, body } = await daemon.ask('/report', { headers })
    expect(status).toBe(200)
    expect(body).toMatch(/^<!doctype html>.*<h2 id="crm-quality-heading">.*<\/html>\n$/s)
  })

  test('a taken port is a warning, and the sync continues without the status server', async context => {
    const squatter = createServer()
    await new Promise<void>(resolve => squatter.listen(0, '127.0.0.1', resolve))
    context.onTestFinished(() => void squatter.close())
    const { port } = squatter.address() as AddressInfo
    const place = placeFor(await workspace(context))
    const daemon = startDaemon(context, place, { PARLEY_HTTP_LISTEN: `127.0.0.1:${port}` })
    const warning = await daemon.says(({ level }) => level === 'warn')
    expect(warning).toMatchObject({
      setting: 'http.listen',
      address: `127.0.0.1:${port}`,
      code: 'EADDRINUSE',
    })
    await loaded(place.file)
    daemon.signal('SIGTERM')
    expect(await daemon.ended).toMatchObject({ status: 0 })
  })
})

describe('a webhook', () => {
  const secret = 'nobody-knows-this'

  test('a webhook makes the daemon read what it names, long before the next poll', async context => {
    const simulator = await workspace(context)
    const place = placeFor(simulator)
    const daemon = startDaemon(context, place, {
      PARLEY_SYNC_POLL_SECONDS: '86400',
      PARLEY_HTTP_NUDGE_SECRET: secret,
    })
    await loaded(place.file)
    const [id = ''] = simulator.apply({ kind: 'edit', resource: 'meetings' }).ids
    const [title] = [...simulator.world.truth().items('meetings')]
      .filter(({ meeting_id }) => meeting_id === id)
      .map(meeting => meeting['title'])
    expect(column(place.file, 'SELECT title FROM meetings WHERE id = ?', id)).not.toEqual([title])
    const post = (given: string) =>
      daemon.ask('/nudge', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-nudge-secret': given },
        body: JSON.stringify({ type: 'meeting.completed.beta', data: { meeting: { meeting_id: id } } }),
      })
    expect((await post('a-guess')).status).toBe(403)
    expect((await post(secret)).status).toBe(202)
    expect(await seen(place.file, title, 'SELECT title FROM meetings WHERE id = ?', id)).toBe(title)
    expect(JSON.stringify(daemon.lines())).not.toContain(secret)
  })

  test('a webhook about something new makes the daemon read the activities too', async context => {
    const simulator = await workspace(context)
    const place = placeFor(simulator)
    const daemon = startDaemon(context, place, {
      PARLEY_SYNC_POLL_SECONDS: '86400',
      PARLEY_HTTP_NUDGE_SECRET: secret,
    })
    await loaded(place.file)
    const [id = ''] = simulator.apply({ kind: 'publish', resource: 'activities' }).ids
    const posted = await daemon.ask(`/nudge/${secret}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"event":"record.activity_link.created.beta"}',
    })
    expect(posted.status).toBe(202)
    expect(await seen(place.file, id, 'SELECT id FROM activities WHERE id = ?', id)).toBe(id)
  })
})
