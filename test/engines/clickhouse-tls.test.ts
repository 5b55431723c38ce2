import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { EXIT_STATUS } from '../../src/errors.ts'
import { parley } from '../cli/parley.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { debianClickHouse, freePorts, PASSWORD, startDebian, USER } from './clickhouse-servers.ts'

const debian = debianClickHouse()

/** A certificate for 127.0.0.1 that it signed itself. */
function createCertificate(): { certificate: string; key: string } {
  const folder = mkdtempSync(join(tmpdir(), 'parley-certificate-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [certificate, key] = [join(folder, 'certificate.pem'), join(folder, 'key.pem')]
  const { status, stderr } = spawnSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=clickhouse'],
      ...['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate],
    ],
    { encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`openssl ended with ${status}: ${stderr}`)
  return { certificate, key }
}

test.skipIf(typeof debian === 'string')(
  'with ?secure a publication and its verification go through TLS, and a certificate that is not trusted is reported with a hint',
  async () => {
    if (typeof debian === 'string') return
    const { certificate, key } = createCertificate()
    const [port = 0] = await freePorts(1)
    const { servers, close } = await startDebian(
      debian,
      `<https_port>${port}</https_port><openSSL><server><certificateFile>${certificate}</certificateFile><privateKeyFile>${key}</privateKeyFile><verificationMode>none</verificationMode></server></openSSL>`,
    )
    onTestFinished(close)
    const [server] = servers
    if (!server) throw new Error('There is no server')
    await server.run('CREATE DATABASE lake')
    const store = temporaryStore()
    const run = (command: readonly string[], host: string, env: Record<string, string> = {}) =>
      parley([...command, `clickhouse://${host}/lake?secure`, '--database', store.path], {
        env: {
          PARLEY_PUBLISH_CLICKHOUSE_USER: USER,
          PARLEY_PUBLISH_CLICKHOUSE_PASSWORD: PASSWORD,
          ...env,
        },
      })
    const host = `127.0.0.1:${port}`
    const trusting = { NODE_EXTRA_CA_CERTS: certificate }
    const refused: [Awaited<ReturnType<typeof run>>, RegExp][] = [
      [
        await run(['publish'], host),
        /^parley: The certificate .* is not trusted: DEPTH_ZERO_SELF_SIGNED_CERT\nhint: .*NODE_EXTRA_CA_CERTS/,
      ],
      [
        await run(['publish'], `localhost:${port}`, trusting),
        /^parley: The certificate .* is for another host: ERR_TLS_CERT_ALTNAME_INVALID\nhint: Use the host name/,
      ],
      [
        await run(['publish'], server.host),
        /^parley: The server .* does not answer with TLS: EPROTO\nhint: Name the port of https_port/,
      ],
    ]
    for (const [{ status, stdout, stderr }, says] of refused) {
      expect(status).toBe(EXIT_STATUS.databaseUnavailable)
      expect(stderr).toMatch(says)
      expect(stderr).not.toMatch(/\n {4}at /)
      expect(stdout + stderr).not.toContain(PASSWORD)
    }
    expect(await server.query("SELECT name FROM system.tables WHERE database = 'lake'")).toEqual([])
    for (const command of [['publish'], ['publish', 'verify']])
      expect(await run(command, host, trusting)).toMatchObject({ status: EXIT_STATUS.done, stderr: '' })
    expect(await server.query('SELECT publication FROM lake.publications')).toEqual([['1']])
  },
)
