import { describe, expect, test } from 'vitest'
import { StopError } from '../../src/base/errors.ts'
import { type ProxyRules, proxyFor, shownProxy } from '../../src/base/proxies.ts'
import { loadSettings } from '../../src/config/load-settings.ts'

const API = { PARLEY_BASE_URL: 'https://api.example.com', PARLEY_API_KEY: 'k', PARLEY_WORKSPACE_ID: 'acme' }

const rules = (env: Record<string, string>): ProxyRules =>
  loadSettings({ flags: {}, env: { ...API, ...env }, cwd: '/nonexistent', requireApi: true }).settings.proxies

/** The proxy for a URL, as messages show it, with its source. */
function route(env: Record<string, string>, url: string): string {
  const proxy = proxyFor(rules(env), url)
  return proxy ? `${shownProxy(proxy)} by ${proxy.source}` : 'direct'
}

const ONE = { HTTPS_PROXY: 'http://one:1', HTTP_PROXY: 'http://two:2' }

test.each<[env: Record<string, string>, url: string, route: string]>([
  [{}, 'https://a.example', 'direct'],
  [ONE, 'https://a.example', 'http://one:1 by HTTPS_PROXY'],
  [ONE, 'http://a.example', 'http://two:2 by HTTP_PROXY'],
  [{ https_proxy: 'http://low:1', ...ONE }, 'https://a.example', 'http://low:1 by https_proxy'],
  [{ https_proxy: '', ...ONE }, 'https://a.example', 'http://one:1 by HTTPS_PROXY'],
  [
    { https_proxy: ' \t', HTTPS_PROXY: ' http://one:1\n' },
    'https://a.example',
    'http://one:1 by HTTPS_PROXY',
  ],
  [{ HTTPS_PROXY: 'proxy.example:3128' }, 'https://a.example', 'http://proxy.example:3128 by HTTPS_PROXY'],
  [
    { HTTPS_PROXY: 'https://me:hush@proxy.example' },
    'https://a.example',
    'https://proxy.example by HTTPS_PROXY',
  ],
  [{ ...ONE, PARLEY_API_PROXY: 'http://own:3' }, 'https://a.example', 'http://own:3 by api.proxy'],
  [{ ...ONE, PARLEY_API_PROXY: 'none' }, 'https://a.example', 'direct'],
  [{ ...ONE, PARLEY_API_PROXY: 'http://own:3', NO_PROXY: 'a.example' }, 'https://a.example', 'direct'],
  [{ PARLEY_API_PROXY: 'http://own:3' }, 'http://127.0.0.1:9000', 'direct'],
  [ONE, 'http://localhost', 'direct'],
  [ONE, 'http://[::1]:80', 'direct'],
])('with %j the way to %s is %s', (env, url, way) => {
  expect(route(env, url)).toBe(way)
})

test.each<[list: string, url: string, isExcepted: boolean]>([
  ['*', 'https://a.example', true],
  ['a.example', 'https://a.example', true],
  ['A.example', 'https://a.EXAMPLE', true],
  ['a.example', 'https://b.a.example', true],
  ['.a.example', 'https://b.a.example', true],
  ['.a.example', 'https://a.example', true],
  ['*.a.example', 'https://b.a.example', true],
  ['a.example', 'https://ba.example', false],
  ['x, a.example\ty', 'https://a.example', true],
  ['a.example:443', 'https://a.example', true],
  ['a.example:8443', 'https://a.example', false],
  ['a.example:8443', 'https://a.example:8443', true],
  ['10.0.0.0/8', 'https://10.1.2.3', true],
  ['10.0.0.0/8', 'https://11.1.2.3', false],
  ['10.0.0.0/33', 'https://10.1.2.3', false],
  ['10.1.2.3', 'https://10.1.2.3:9', true],
  ['fd00::/8', 'https://[fd12::1]', true],
  ['[fd12::1]:443', 'https://[fd12::1]', true],
  ['10.0.0.0/8', 'https://[fd12::1]', false],
  ['', 'https://a.example', false],
])('NO_PROXY=%j for %s: %s', (list, url, isExcepted) => {
  expect(route({ ...ONE, no_proxy: '', NO_PROXY: list }, url)).toBe(
    isExcepted ? 'direct' : 'http://one:1 by HTTPS_PROXY',
  )
})

describe('a wrong address of a proxy', () => {
  const wrong = [
    'http://me:hush@',
    'http://me:hu/sh@proxy:3128',
    'http://me:hu#sh@proxy:3128',
    'http://me:%hush@proxy:3128',
    'socks5://me:hush@proxy:1080',
    'http://me:hush@proxy:3128/path',
    'me:hush@proxy:port',
    'None',
    'NONE',
    'proxy',
  ]
  test.each(
    wrong.flatMap(text => [
      [
        'HTTPS_PROXY',
        'environment HTTPS_PROXY is invalid (not shown): expected the http or https address',
        text,
      ],
      [
        'http_proxy',
        'environment http_proxy is invalid (not shown): expected the http or https address',
        text,
      ],
      [
        'PARLEY_API_PROXY',
        'api.proxy is invalid (not shown) in environment PARLEY_API_PROXY: expected',
        text,
      ],
    ]),
  )(
    'in %s is an error of the settings that does not show it: %s … %s',
    (name = '', message = '', text = '') => {
      expect(() => rules({ [name]: text })).toThrow(
        expect.objectContaining({ message: expect.stringContaining(message) }),
      )
      expect(() => rules({ [name]: text })).not.toThrow(/hu.?sh/)
      expect(() => rules({ [name]: text })).toThrow(StopError)
    },
  )

  test('in the environment does not concern a command that sends no requests', () => {
    const request = {
      flags: {},
      env: { HTTPS_PROXY: 'socks5://x:1' },
      cwd: '/nonexistent',
      requireApi: false,
    }
    expect(loadSettings(request)).toMatchObject({ settings: { proxies: {} }, warnings: [] })
  })
})
