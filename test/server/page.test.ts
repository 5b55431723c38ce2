import { describe, expect, test } from 'vitest'
import type { StatusReport } from '../../src/store/status/report.ts'
import { hostilePage, pageOf } from './made-page.ts'
import { start } from './status-server.ts'

describe('the page', () => {
  test('the verdict is the first heading and the title of the tab', () => {
    const html = pageOf()
    expect(html).toContain('<h1><bdi>Loading history: the first answers are still to come</bdi></h1>')
    expect(html).toContain('<title>Loading history – acme – parley</title>')
  })

  test('the problems after that of the verdict are listed', () => {
    const problem = (id: string) =>
      ({
        id,
        kind: 'wait',
        what: `Reading ${id} fails`,
        detail: null,
        todo: 'Nothing yet.',
        since: null,
      }) as const
    expect(pageOf(() => ({ problems: [problem('teams')] }))).not.toContain('Reading teams fails')
    const html = pageOf(() => ({ problems: [problem('teams'), problem('meetings')] }))
    expect(html).toContain('1 more problem')
    expect(html).not.toContain('Reading teams fails')
    expect(html).toContain('Reading meetings fails')
  })

  test.each([
    [['2024-12', '2025-01', '2025-02'], ['2025']],
    [
      ['earlier', '2024-08', '2024-09', '2024-10', '2024-11', '2024-12', '2025-01'],
      ['2024', '2025'],
    ],
  ])('the years of %o are %o, so that no label covers another', (months, years) => {
    const html = pageOf(({ overview }) => ({ overview: { ...overview, coverage: { months, rows: [] } } }))
    expect([...html.matchAll(/class="year"[^>]*>(\d+)/g)].map(([, year]) => year)).toEqual(years)
  })

  test.each([
    [12, 1.8],
    [48, 1.8],
    [49, 1.4],
  ])('the map of %i months is drawn %f times as large as its letters are in it', (count, scale) => {
    const months = Array.from({ length: count }, (_, index) => `2025-${(index % 12) + 1}`)
    const html = pageOf(({ overview }) => ({ overview: { ...overview, coverage: { months, rows: [] } } }))
    const [, drawn, width] = /class="cells".* viewBox="0 0 (\d+) \d+" width="([\d.]+)"/.exec(html) ?? []
    expect(Number(width) / Number(drawn)).toBeCloseTo(scale)
  })

  test.each([
    [true, '<a href="report#guesses">3 guesses for reports, with their reasons</a>'],
    [false, '3 guesses for reports; <code>parley doctor</code> lists them'],
  ])(
    'the page says how many guesses there are, and where they are explained (report served: %s)',
    (hasReport, text) => {
      const html = pageOf(({ overview }) => ({ hasReport, overview: { ...overview, guesses: 3 } }))
      expect(html).toContain(text)
      expect(html.includes('<a href="report">')).toBe(hasReport)
      expect(pageOf(() => ({ hasReport }))).not.toContain('guesses')
    },
  )

  test('fields that differ take one line until someone unfolds them', () => {
    const drift = ['a', 'b'].map(field => ({ table: 'meetings', field, reason: 'unknown field' }))
    const html = pageOf(({ overview }) => ({ overview: { ...overview, drift } }))
    expect(html).toContain('<details><summary>2 fields</summary><ul><li>meetings.')
  })

  const onHold = (api: StatusReport['api']) =>
    pageOf(({ report }) => ({
      report: {
        ...report,
        api,
        resources: report.resources.map(row => ({
          ...row,
          state: 'on hold',
          reason: 'No request succeeds',
          next_run_at: '2026-03-04T12:05:00.000Z',
        })),
      },
    }))

  test('a resource that is on hold shows that alone: why and until when is said once for all', () => {
    const since = '2026-03-04T12:00:00.000Z'
    const html = onHold({ kind: 'asked-to-wait', reason: 'HTTP 429', since, next_try_at: since })
    const cells = /<th scope="row">teams<td>(.*)<td>(.*?)<td>.*\n/.exec(html)?.[0] ?? ''
    expect(cells).toContain('<span class="state on-hold">on hold</span><td')
    expect(cells).toContain('<td>–<td')
    expect(html).not.toMatch(/No request succeeds|in 5 min/)
  })

  test('a resource that is on hold says why while the API answers', () => {
    expect(onHold(null)).toMatch(/on hold<\/span><small>.*No request succeeds/)
  })

  test('a resource that the settings leave out says so, and is not due', () => {
    const html = pageOf(({ report }) => ({
      report: {
        ...report,
        chosen_resources: ['members'],
        resources: report.resources.map(row => ({ ...row, reason: `Why ${row.resource}` })),
      },
    }))
    const cells = /<th scope="row">teams<td>.*\n/.exec(html)?.[0] ?? ''
    expect(cells).toMatch(/backfilling<\/span><small>.*Why teams/)
    expect(cells).toContain('<td>–<td')
    expect(html).not.toContain('Why members')
  })

  test('a strip of runs begins with the newest, since a narrow page cuts its end', () => {
    const run = (started_at: string) => ({
      started_at,
      ended_at: null,
      outcome: 'complete' as const,
      requests: 1,
      rows_changed: 1,
      rows_deleted: 0,
    })
    const runs = [run('2026-03-04T11:00:00.000Z'), run('2026-03-04T11:59:00.000Z')]
    const html = pageOf(({ overview }) => ({ overview: { ...overview, runs: new Map([['teams', runs]]) } }))
    const places = [...html.matchAll(/x="(\d+)"><title>[^<]*(11:\d\d)/g)].map(([, x, time]) => [x, time])
    expect(places).toEqual([
      ['0', '11:59'],
      ['10', '11:00'],
    ])
    expect(html).toContain(' complete, 1 row</title>')
  })

  test.each([
    '<script>alert(1)</script>',
    `"><img src=x onerror='alert(1)'>`,
    '\u202Eright to left',
    'x'.repeat(10_000),
  ])('a name from the API is text and nothing else: %.40s', name => {
    const html = hostilePage(name)
    expect(html).not.toMatch(/<script>|<img/)
    expect(html.match(/<script/g)).toHaveLength(1)
    expect(html).toContain('</html>')
  })

  test('everything that the page loads is its own', () => {
    const addresses = [...pageOf().matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address ?? '')
    expect(addresses.filter(address => !/^(data:image\/svg\+xml,|#)/.test(address))).toEqual([
      'style.css',
      'live.js',
    ])
  })

  test('the page of ten years with a run strip for each resource is below 200 kB', () => {
    const html = pageOf(({ overview, report }) => {
      const months = Array.from(
        { length: 121 },
        (_, index) => `20${10 + Math.floor(index / 12)}-${String((index % 12) + 1).padStart(2, '0')}`,
      )
      const cells = months.map(month => ({
        month,
        state: 'texts-missing' as const,
        rows: 123_456,
        missing: 1234,
        suspected: 0,
      }))
      const run = {
        started_at: '2026-03-04T12:00:00.000Z',
        ended_at: null,
        outcome: 'complete' as const,
        requests: 1,
        rows_changed: 123_456,
        rows_deleted: 0,
      }
      const spans = (number: number) =>
        Array.from({ length: number }, () => ({
          at: '2026-03-04T12:00:00.000Z',
          minutes: 1,
          requests: 6000,
          throttled: 10,
          errors: 10,
          rows: 10_000,
          rate: 9.8,
          in_flight: 8,
          paused_seconds: 30,
        }))
      return {
        overview: {
          ...overview,
          coverage: { months, rows: overview.coverage.rows.map(({ resource }) => ({ resource, cells })) },
          runs: new Map(
            report.resources.map(({ resource }) => [resource, Array.from({ length: 24 }, () => run)]),
          ),
          traffic: { hour: spans(60), day: spans(96), week: spans(84) },
        },
      }
    })
    expect(Buffer.byteLength(html)).toBeLessThan(200_000)
  })
})

describe('the page on the status server', () => {
  test('the page, its style and its module are served with headers that allow nothing else', async () => {
    const { ask } = await start()
    const types = { '/': 'text/html', '/style.css': 'text/css', '/live.js': 'text/javascript' }
    for (const [path, type] of Object.entries(types)) {
      const { status, headers } = await ask('GET', path)
      expect(status).toBe(200)
      expect(headers['content-type']).toBe(`${type}; charset=utf-8`)
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self';/)
      expect(headers).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
      })
    }
  })

  test('a page without a database says so with status 503', async () => {
    const { ask } = await start({
      page: async () => ({ status: 503, html: '<!doctype html><p>There is no warehouse yet' }),
    })
    expect(await ask('GET', '/')).toMatchObject({
      status: 503,
      text: expect.stringContaining('no warehouse'),
    })
  })
})
