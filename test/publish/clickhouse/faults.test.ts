import { expect, test } from 'vitest'
import { brokenAnswer, type DatabaseWords, serverError } from '../../../src/publish/clickhouse/faults.ts'

const WORDS: DatabaseWords = {
  ...{ name: 'clickhouse://a:8443/lake', url: 'https://a:8443', database: 'lake' },
  ...{ cluster: undefined, isReadOnly: false },
}

const withCode = (code: string): Error => Object.assign(new Error('a text of a customer'), { code })

test.each<[code: string, says: RegExp, hint: RegExp]>([
  ['DEPTH_ZERO_SELF_SIGNED_CERT', /certificate .* is not trusted/, /NODE_EXTRA_CA_CERTS/],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', /certificate .* is not trusted/, /NODE_EXTRA_CA_CERTS/],
  ['CERT_HAS_EXPIRED', /certificate .* is not trusted/, /If it has expired, renew it/],
  ['ERR_TLS_CERT_ALTNAME_INVALID', /certificate .* is for another host/, /Use the host name/],
  ['EPROTO', /does not answer with TLS/, /https_port/],
  ['ECONNREFUSED', /cannot be reached/, /that the server runs/],
])('%s is reported with what to do', (code, says, hint) => {
  const error = serverError(WORDS, withCode(code))
  expect(error.message).toMatch(says)
  expect(error.message).toContain(`https://a:8443`)
  expect(error.message).toMatch(new RegExp(`: ${code}$`))
  expect(error.hint).toMatch(hint)
  expect(`${error.message} ${error.hint}`).not.toContain('customer')
})

test('the hints of a command that only reads do not mention publishing', () => {
  const error = (isReadOnly: boolean) =>
    serverError({ ...WORDS, isReadOnly }, new Error('Code: 497. DB::Exception: x'))
  expect(error(false).hint).toMatch(/^The user needs SELECT, INSERT, CREATE, DROP and ALTER for lake/)
  expect(error(true).message).toMatch(/may not read the database lake/)
  expect(error(true).hint).toMatch(/^The user needs SELECT for lake/)
  for (const code of [75, 159, 241, 999_999])
    expect(serverError({ ...WORDS, isReadOnly: true }, new Error(`Code: ${code}, e.`)).hint).not.toContain(
      'publish',
    )
})

test('an answer that ends with an error is reported as that error, and any other as cut', () => {
  const cut = (text: string) => brokenAnswer(WORDS, Buffer.from(text))
  expect(cut('\u0001\u0000Code: 241, e.displayText() = a text of a customer')).toMatchObject({
    code: 'publish-memory',
  })
  expect(cut('half a row')).toMatchObject({ code: 'publish-broken-answer' })
})
