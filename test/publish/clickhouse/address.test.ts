import { expect, test } from 'vitest'
import { parseClickHouseAddress } from '../../../src/publish/clickhouse/address.ts'

test.each([
  ['clickhouse://db.example.com/parley', 'http://db.example.com:8123'],
  ['clickhouse://db.example.com:9123/parley/', 'http://db.example.com:9123'],
  ['clickhouse://db.example.com/parley?secure', 'https://db.example.com:8443'],
  ['clickhouse://db.example.com:443/parley?secure=true', 'https://db.example.com:443'],
  ['clickhouse://[::1]:8123/parley?secure=false', 'http://[::1]:8123'],
])('%s is the database parley at %s', (text, url) => {
  const name = `clickhouse://${url.replace(/^https?:\/\//, '')}/parley`
  expect(parseClickHouseAddress(text)).toEqual({
    name,
    url,
    database: 'parley',
    cluster: undefined,
    isReplicated: false,
  })
})

test('a cluster and replication are parameters', () => {
  expect(parseClickHouseAddress('clickhouse://a/b?secure&cluster=main&replicated')).toMatchObject({
    url: 'https://a:8443',
    cluster: 'main',
    isReplicated: true,
  })
})

test.each(['/data/lake', 's3://bucket/lake', 'clickhouse'])('%s is no address of ClickHouse', text => {
  expect(parseClickHouseAddress(text)).toBeUndefined()
})

test.each([
  ['clickhouse://', /Expected clickhouse:\/\/host:8123\/database/],
  ['clickhouse://host', /Expected clickhouse:\/\/host:8123\/database/],
  ['clickhouse:///database', /Expected clickhouse:\/\/host:8123\/database/],
  ['clickhouse://host/a/b', /Expected clickhouse:\/\/host:8123\/database/],
  ['clickhouse://host/a`b', /Expected clickhouse:\/\/host:8123\/database/],
  ['clickhouse://host/a?user=me&password=pa55', /The parameters are \?secure, \?cluster, \?replicated/],
  ['clickhouse://host/a?secure=yes', /\?secure is true or false/],
  ['clickhouse://host/a?replicated', /needs &cluster=NAME/],
  ['clickhouse://host/a?cluster=', /The name of a cluster/],
  ['clickhouses://host/a', /write clickhouse:\/\/host:8443\/database\?secure/],
  ['clickhouse://me:pa55@host/a', /publish.clickhouse_password_file/],
  ['clickhouse://pa55@host/a', /publish.clickhouse_password_file/],
])('%s is refused with a hint, and is not quoted', (text, hint) => {
  expect(() => parseClickHouseAddress(text)).toThrow(
    expect.objectContaining({
      code: 'publish-bad-target',
      hint: expect.stringMatching(hint),
      message: expect.not.stringContaining('pa55'),
    }),
  )
})
