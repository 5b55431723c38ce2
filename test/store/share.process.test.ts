import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { fileSystemOf } from '../../src/store/disk/location.ts'
import { parley } from '../cli/parley.ts'
import { type Place, placeFor, workspace } from '../cli/workspace.ts'
import { startDaemon } from '../daemon/cli-daemon.ts'
import { requirePrograms } from '../systemd/tools.ts'
import { temporaryStore } from './temporary-store.ts'

const MOUNTS = `22 27 0:21 / /proc rw,nosuid - proc proc rw
27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 27 0:50 / /srv/data rw,relatime shared:2 master:3 - nfs4 server:/data rw
41 27 0:51 / /srv/data\\040b rw - fuse.sshfs server: rw
42 27 0:52 / /mnt rw - cifs //server/share rw
43 42 8:2 / /mnt rw - xfs /dev/sdb rw
`

describe('the file system of a path', () => {
  test.each([
    ['/srv/parley.db', { mountPoint: '/', type: 'ext4' }],
    ['/srv/data/parley.db', { mountPoint: '/srv/data', type: 'nfs4' }],
    ['/srv/data', { mountPoint: '/srv/data', type: 'nfs4' }],
    ['/srv/database', { mountPoint: '/', type: 'ext4' }],
    ['/srv/data b/parley.db', { mountPoint: '/srv/data b', type: 'fuse.sshfs' }],
    ['/mnt/parley.db', { mountPoint: '/mnt', type: 'xfs' }],
  ])('%s is on %j', (path, found) => {
    expect(fileSystemOf(path, MOUNTS)).toEqual(found)
  })

  test('nothing is known where the system does not show its mounts', () => {
    expect(fileSystemOf('/srv/parley.db', '')).toBeUndefined()
  })
})

describe('a database on a network share', () => {
  let library = ''
  let mounts = ''

  beforeAll(() => {
    requirePrograms('gcc')
    library = join(tmpdir(), 'played-share.so')
    mounts = join(tmpdir(), 'played-mounts')
    const source = fileURLToPath(new URL('played-share.c', import.meta.url))
    execFileSync('gcc', ['-shared', '-fPIC', '-o', library, source, '-ldl'])
    writeFileSync(mounts, '27 1 0:50 / / rw,relatime shared:1 - nfs4 server:/data rw\n')
  })

  const onShare = ({ env, ...place }: Place, fault = 'none'): Place => ({
    ...place,
    env: { ...env, LD_PRELOAD: library, PLAYED_MOUNTS: mounts, PLAYED_FAULT: fault },
  })
  const advice = "SQLite's write-ahead log needs a local disk"

  test.each([
    ['locks', 'is on nfs4, where locks do not work, or another machine holds the lock'],
    ['memory', 'it is on nfs4 (SQLITE_IOERR_SHM'],
  ])('a backfill on a share without %s ends with 73 and says so', async (fault, says) => {
    const place = onShare(placeFor({ url: 'http://127.0.0.1:9', apiKey: 'k', workspaceId: 'acme' }), fault)
    const { status, stderr } = await parley(['backfill'], place)
    expect(status).toBe(EXIT_STATUS.databaseUnavailable)
    expect(stderr).toContain(says)
    expect(stderr).toContain(`hint: ${advice}`)
  })

  test.each([['export', 'parquet'], ['publish']])(
    'a target on a share without locks ends parley %s with 73 and an advice about folders',
    async (...command) => {
      const place = onShare(
        placeFor({ url: 'http://127.0.0.1:9', apiKey: 'k', workspaceId: 'acme' }),
        'target',
      )
      const args = [...command, 'lake', '--database', temporaryStore().path]
      const { status, stderr } = await parley(args, place)
      expect(status).toBe(EXIT_STATUS.databaseUnavailable)
      expect(stderr).toMatch(/lake is on nfs4, where locks do not work, or another machine holds the lock/)
      expect(stderr).toContain(`hint: Let parley ${command[0]} write to a folder on a local disk`)
    },
  )

  test('a target whose lock ends with an error of the disk ends parley with 73 and is not taken for a fault of the warehouse', async () => {
    const place = onShare(placeFor({ url: 'http://127.0.0.1:9', apiKey: 'k', workspaceId: 'acme' }), 'broken')
    const { status, stderr } = await parley(['publish', 'lake', '--database', temporaryStore().path], place)
    expect(status).toBe(EXIT_STATUS.databaseUnavailable)
    expect(stderr).toMatch(
      /Cannot publish to .*lake: reading or writing failed \(EIO\)\nhint: Check the disk\./,
    )
  })

  test('doctor and the start of a daemon warn of a share on which everything works', async context => {
    const place = onShare(placeFor(await workspace(context)))
    expect((await parley(['doctor'], place)).stdout).toMatch(
      /^warning +file system: .*parley\.db is on nfs4$/m,
    )
    const daemon = startDaemon(context, place)
    const { level, reason } = await daemon.says(({ msg }) => msg === 'The database is not on a local disk')
    expect({ level, reason }).toEqual({
      level: 'warn',
      reason: expect.stringContaining(`It is on nfs4. ${advice}`),
    })
  })
})
