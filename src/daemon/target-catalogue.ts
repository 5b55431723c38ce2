import type { Clock } from '../base/clock.ts'
import { EXIT_STATUS, StopError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { settingsPage } from '../config/setting-findings.ts'
import { createCatalogue } from '../publish/catalogue/catalogue.ts'
import { openTargetReader, parseTarget, type TargetSettings } from '../publish/storage/open.ts'
import type { TargetReader } from '../publish/storage/target-reader.ts'

export interface TargetCatalogueParts {
  /** `settings` is replaced when the settings change. */
  current: { settings: TargetSettings }
  clock: Clock
  log: Log
}

/** The catalogue of `publish.target`, also after the settings have changed. */
export function createTargetCatalogue({ current, clock, log }: TargetCatalogueParts) {
  const closing = new AbortController()
  let opened: { settings: TargetSettings; reader: Promise<TargetReader> } | undefined
  let isFailing = false
  const close = () => void opened?.reader.then(reader => reader.close()).catch(() => undefined)
  const reader = (): Promise<TargetReader> => {
    const { settings } = current
    if (opened?.settings !== settings) {
      close()
      opened = { settings, reader: openReader(settings, clock, closing.signal) }
    }
    return opened.reader
  }
  const target: Pick<TargetReader, 'read' | 'close'> = {
    async read(path) {
      try {
        const bytes = await (await reader()).read(path)
        isFailing = false
        return bytes
      } catch (error) {
        if (!isFailing && !closing.signal.aborted) log.warn('The catalogue cannot read its target', { error })
        isFailing = true
        throw error
      }
    },
    close,
  }
  return {
    ...createCatalogue(target, clock),
    close() {
      closing.abort(new Error('The catalogue is closed'))
      target.close()
    },
  }
}

async function openReader(
  settings: TargetSettings,
  clock: Clock,
  signal: AbortSignal,
): Promise<TargetReader> {
  const { target: text } = settings.publish
  if (text !== undefined) {
    const { location } = settings.publish
    return openTargetReader(parseTarget(text, '/'), { settings, location, clock, signal })
  }
  throw new StopError('publish.target is not set', {
    code: 'publish-no-target',
    hint: `Set publish.target to a folder or s3://bucket/prefix. ${settingsPage()}`,
    exitStatus: EXIT_STATUS.settings,
  })
}
