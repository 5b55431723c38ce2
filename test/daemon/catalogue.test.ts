import { expect, onTestFinished, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { createTargetCatalogue } from '../../src/daemon/target-catalogue.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { newLake, publishTo } from '../publish/publishing.ts'
import { newFolder, temporaryStore } from '../store/temporary-store.ts'

const settingsOf = (target: string | undefined) =>
  loadSettings({
    flags: {},
    cwd: newFolder(),
    env: {
      PARLEY_PUBLISH_S3_ACCESS_KEY_ID: 'AKID',
      ...(target !== undefined && { PARLEY_PUBLISH_TARGET: target }),
    },
    requireApi: false,
  }).settings

async function targetCatalogue(target: string | undefined) {
  const lines: string[] = []
  const log = await createLog({ level: 'info', stream: { write: line => lines.push(line) } })
  const clock = virtualClock(0)
  const current = { settings: settingsOf(target) }
  const catalogue = createTargetCatalogue({ current, clock, log })
  onTestFinished(() => catalogue.close())
  return { catalogue, current, clock, lines }
}

async function lakeWith(table: string): Promise<string> {
  const lake = await newLake()
  await publishTo(temporaryStore().path, lake, { tables: [table] })
  return lake.folder
}

test('the catalogue follows publish.target when the settings change', async () => {
  const { catalogue, current, clock } = await targetCatalogue(await lakeWith('teams'))
  expect((await catalogue.publication()).tables).toEqual(['publications', 'teams'])
  current.settings = settingsOf(await lakeWith('members'))
  await clock.advance(2000)
  expect((await catalogue.publication()).tables).toEqual(['members', 'publications'])
  current.settings = settingsOf(undefined)
  await clock.advance(2000)
  await expect(catalogue.publication()).rejects.toMatchObject({ code: 'publish-no-target' })
})

test('a target that cannot be read is logged once, until it was read again', async () => {
  const { catalogue, current, clock, lines } = await targetCatalogue('s3://bucket/lake')
  const fail = async () => {
    await expect(catalogue.publication()).rejects.toMatchObject({ code: 'bad-settings' })
    await clock.advance(2000)
  }
  await fail()
  await fail()
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain('publish.s3_secret_access_key is not set')
  const unset = current.settings
  current.settings = settingsOf(await lakeWith('teams'))
  await catalogue.publication()
  await clock.advance(2000)
  current.settings = unset
  await fail()
  expect(lines).toHaveLength(2)
})
