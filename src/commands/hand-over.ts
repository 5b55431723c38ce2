import type { Argument } from 'commander'
import { type Clock, systemClock } from '../base/clock.ts'
import { EXIT_STATUS, StopError } from '../base/errors.ts'
import type { NewRequest } from '../store/file/handed-over.ts'
import type { OpenStore } from '../store/store.ts'
import { type Writer, writerText } from '../store/sync/writer-note.ts'
import { wrapText } from '../terminal/wording.ts'
import { type CommandDefinition, loadCommandSettings, settingsOfSections } from './base/command.ts'
import { parseResourceName } from './base/option-values.ts'

/** A command about one resource, done here or handed over to the process that writes the warehouse. */
interface ResourceCommand<Name extends string> extends Pick<CommandDefinition, 'description' | 'examples'> {
  names: readonly Name[]
  /** The argument in the usage, and what it is. */
  argument: Argument
  /** Does the work. Returns the sentences to print. */
  work(resource: Name, order: HandOverOptions): Promise<readonly string[]>
}

const COLUMNS = 100

export function resourceCommand<Name extends string>({
  description,
  examples,
  names,
  argument,
  work,
}: ResourceCommand<Name>): CommandDefinition {
  return {
    description,
    arguments: [argument],
    settings: settingsOfSections('database'),
    options: [],
    examples,
    async run(context, input) {
      const resource = parseResourceName(input.args[0] ?? '', names)
      const { settings } = loadCommandSettings(context, input, { requireApi: false })
      const { path, mode } = settings.database
      const { requireWarehouse } = await import('../store/status/status.ts')
      requireWarehouse(path)
      const order = { path, mode, crmTables: settings.crm.tables, clock: systemClock() }
      const lines = (await work(resource, order)).flatMap(sentence => wrapText(sentence, COLUMNS))
      context.stdout.write(`${lines.join('\n')}\n`)
      return EXIT_STATUS.done
    },
  }
}

export interface HandOverOptions {
  path: string
  mode: number
  crmTables: boolean
  clock: Clock
}

/**
 * - `done`: the work ran here;
 * - `writer`: another process writes the warehouse, so the request is stored. Undefined when the process is not known.
 */
export type HandOverResult<T> = { done: T } | { writer: Writer | undefined }

/** Runs the work in a transaction. If another process is writing the warehouse, only stores the request. */
export async function runOrHandOver<T>(
  order: HandOverOptions,
  request: NewRequest,
  work: (store: OpenStore) => T,
): Promise<HandOverResult<T>> {
  try {
    const { openStoreWhenFree } = await import('../store/store.ts')
    const store = await openStoreWhenFree({ ...order, command: request.kind, pid: process.pid })
    try {
      return { done: await store.transaction(() => work(store)) }
    } finally {
      store.close()
    }
  } catch (error) {
    const isHeld = error instanceof StopError && error.code === 'database-locked'
    if (!isHeld) throw error
    const { askWriter } = await import('../store/file/handed-over.ts')
    return { writer: await askWriter(order.path, request, order.clock) }
  }
}

/** Which process writes the warehouse, and when the request will be applied. */
export function handOverSentence(writer: Writer | undefined, now: number): string {
  const next =
    writer?.command === 'daemon'
      ? 'It applies the request within seconds, or as soon as it resumes if it is waiting (see parley status).'
      : 'The next parley backfill or daemon applies the request first.'
  return `The warehouse is being written by ${writerText(writer, now)}. ${next}`
}
