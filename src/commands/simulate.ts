import { once } from 'node:events'
import { InvalidArgumentError, Option } from 'commander'
import { systemClock } from '../base/clock.ts'
import { EXIT_STATUS, errorCode, StopError } from '../base/errors.ts'
import { jsonLine } from '../base/safe-text.ts'
import { number } from '../config/kinds.ts'
import { FAULT_KINDS, type Fault } from '../simulator/faults/faults.ts'
import type { LimitModel, LimitRule } from '../simulator/faults/limits.ts'
import { ENVELOPES } from '../simulator/http/paging.ts'
import { keepChanging } from '../simulator/living.ts'
import type { Simulator, SimulatorOptions } from '../simulator/server.ts'
import type { CommandDefinition } from './base/command.ts'
import { parsedAs } from './base/option-values.ts'

type Envelopes = NonNullable<SimulatorOptions['envelopes']>

/** The options of the simulator, and the flags whose name or type differs from that of their option. */
interface Flags
  extends Omit<SimulatorOptions, 'limit'>,
    Envelopes,
    Pick<LimitModel, 'rateHeaders'>,
    Required<Pick<LimitModel, 'hint'>> {
  port: number
  key: string
  workspace: string
  latency: number
  limit?: LimitRule
  fault: Fault[]
  overviewsAfter?: number
  security: boolean
  bot: boolean
  living?: boolean
  json?: boolean
}

const parseWholeNumber = parsedAs(number({ whole: true, max: 999_999_999 }))

/** Serves a simulated workspace until the first signal, then ends with exit status 0. */
export const simulateCommand: CommandDefinition<Flags> = {
  description:
    'Serves the whole API from a simulated workspace, for trials and tests. The same seed and sizes give the same responses. When the server listens, its address is printed on standard output.',
  settings: [],
  options: [...serviceOptions(), ...sizeOptions(), ...behaviourOptions()],
  examples: [
    ['parley simulate', 'a small workspace on port 8765, key demo-key, workspace demo-workspace'],
    ['parley simulate --living', 'one that changes all the time, and fails now and then'],
    [
      'parley simulate --messages 100000 --limit token-bucket:50,100 --latency 20',
      'a larger one that allows 50 requests a second',
    ],
    [
      'parley simulate --port 0 --json --control --fault status:0.02:503 --fault stall:0.001',
      'faults, any free port, and the control plane',
    ],
  ],

  async run({ stdout, stderr, signal }, { options }) {
    refuseOtherClock(options)
    stderr.write(`Generating a workspace with ${options.messages ?? 2_000} messages\n`)
    const simulator = await start(options)
    const ready = { url: simulator.url, key: simulator.apiKey, workspace_id: simulator.workspaceId }
    stdout.write(
      options.json
        ? jsonLine(ready)
        : `url ${ready.url}\nkey ${ready.key}\nworkspace ${ready.workspace_id}\n`,
    )
    if (options.living)
      await keepChanging(
        simulator,
        {
          clock: systemClock(),
          random: Math.random,
          faults: options.fault,
          say: line => stderr.write(`${line}\n`),
        },
        signal,
      )
    else if (!signal.aborted) await once(signal, 'abort')
    stderr.write(`Stopping after ${simulator.requests.total()} requests\n`)
    await simulator.close()
    return EXIT_STATUS.done
  },
}

/** @throws StopError (exit status 64) for an instant with `--living`: that workspace changes by the real clock */
function refuseOtherClock({ living, now }: Flags): void {
  if (!living || now === 'real') return
  throw new StopError(`--now is ${now} with --living: expected real, which is its default there`, {
    code: 'simulator-clock',
    hint: 'Remove --now or --living.',
    exitStatus: EXIT_STATUS.usage,
  })
}

function serviceOptions(): Option[] {
  return [
    new Option('--port <number>', 'port on 127.0.0.1; 0 for any free port')
      .argParser(parsedAs(number({ whole: true, max: 65_535 })))
      .default(8765),
    new Option('--key <key>', 'the accepted API key').default('demo-key'),
    new Option('--workspace <id>', 'the accepted workspace id').default('demo-workspace'),
    new Option('--json', 'print the address as one line of JSON'),
    new Option(
      '--control',
      'also serve, without a key: GET /_simulator/truth (counts) and /_simulator/truth/KIND (every item as a line of JSON), GET and DELETE /_simulator/requests, POST /_simulator/changes, /_simulator/faults, /_simulator/limit and /_simulator/key',
    ),
  ].map(option => option.helpGroup('Service:'))
}

function sizeOptions(): Option[] {
  return [
    numberOption('--seed <number>', 'seed of the generated data').default(1),
    numberOption('--messages <count>', 'messages, each with an activity (default 2000)'),
    numberOption('--meetings <count>', 'meetings (default 120)'),
    numberOption('--deals <count>', 'deals, about 3 % of several restricted, so not served (default 80)'),
    numberOption('--companies <count>', 'companies (default by the number of deals)'),
    numberOption('--contacts <count>', 'contacts (default three for each company)'),
    numberOption('--members <count>', 'members, one in nine inactive (default 20)'),
    numberOption('--teams <count>', 'teams (default 5)'),
    numberOption('--collections <count>', 'collections of meetings (default 14)'),
    numberOption('--playbooks <count>', 'playbooks, one in three inactive (default 6)'),
    numberOption('--access-logs <count>', 'entries of the access log (default 1500)'),
    numberOption('--custom-records <count>', 'records of each custom object (default 40)'),
    numberOption('--transcript-turns <count>', 'turns in the longest transcripts (default 80)'),
    numberOption('--history-days <days>', 'length of the history (default 730)'),
    new Option('--tidy', 'generate no hostile names and values'),
    new Option(
      '--realistic',
      'add what makes questions hard: several currencies, people with two addresses, deleted stages and so on',
    ),
    new Option(
      '--now <instant>',
      'end of the history: an RFC 3339 instant or "real" (default 2026-06-30T12:00:00Z)',
    ),
  ].map(option => option.helpGroup('Workspace:'))
}

function behaviourOptions(): Option[] {
  const shape = (flags: string, what: string): Option =>
    new Option(flags, `format of ${what}, which the API's description leaves open`).choices(ENVELOPES)
  return [
    numberOption('--latency <ms>', 'delay of every response').default(0),
    new Option(
      '--limit <model>',
      'rate limit: token-bucket:RATE,BURST fixed-window:COUNT,MS sliding-window:COUNT,MS or concurrency:MAX',
    ).argParser(parseLimitRule),
    new Option('--hint <kind>', 'header of a 429 response that gives the wait')
      .choices(['retry-after-seconds', 'retry-after-date', 'none'])
      .default('retry-after-seconds'),
    new Option('--rate-headers', 'send RateLimit-* headers'),
    new Option(
      '--fault <fault>',
      `KIND[:PROBABILITY[:STATUS]] or a JSON object as for POST /_simulator/faults; may be given several times; kinds: ${FAULT_KINDS.join(', ')}`,
    )
      .argParser(parseFault)
      .default([], 'none'),
    shape('--meeting-list <envelope>', 'the meeting list'),
    shape('--playbook-list <envelope>', 'the playbook list'),
    shape('--object-list <envelope>', 'the object list'),
    new Option('--meeting-list-id <name>', 'name of the id in the meeting list').choices([
      'meeting_id',
      'id',
    ]),
    new Option('--unstated-single <shape>', 'format of single reads that the API leaves open').choices([
      'bare',
      'data',
    ]),
    new Option(
      '--unready-results <answer>',
      'response for playbook results while the overview is not ready',
    ).choices(['empty', 'not-found']),
    new Option(
      '--access-log-end-parameter <name>',
      'name of the query parameter for the end of a period of the access log (default: "to")',
    ),
    numberOption('--overviews-after <ms>', 'time after the start when unready overviews become ready'),
    new Option('--no-security', 'a workspace without the access log'),
    new Option('--no-bot', 'a workspace without a bot definition'),
    new Option('--no-integrations', 'a workspace without integrations'),
    new Option(
      '--living',
      'change the workspace every few seconds, and fail for some seconds every minute; the clock is the real one',
    ).implies({ now: 'real' }),
    new Option('--log-requests', 'write the requests that the simulator serves to its access log'),
  ].map(option => option.helpGroup('Behaviour:'))
}

function numberOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser(parseWholeNumber)
}

function parseLimitRule(text: string): LimitRule {
  const [kind = '', numbers = ''] = text.split(':')
  const [a = Number.NaN, b = Number.NaN] = numbers.split(',').map(Number)
  const isSet = (...values: number[]): boolean => values.every(value => value > 0)
  if (kind === 'token-bucket' && isSet(a, b)) return { kind, rate: a, burst: b }
  if ((kind === 'fixed-window' || kind === 'sliding-window') && isSet(a, b))
    return { kind, count: a, windowMs: b }
  if (kind === 'concurrency' && isSet(a)) return { kind, max: a }
  throw new InvalidArgumentError('Expected a model with its numbers, such as token-bucket:50,100.')
}

function parseFault(text: string, before: Fault[]): Fault[] {
  const given: Partial<Fault> = text.startsWith('{') ? parseJson(text) : parseShortFault(text)
  const kind = FAULT_KINDS.find(each => each === given.kind)
  const probability = given.probability ?? 1
  if (kind === undefined) throw new InvalidArgumentError(`Expected one of ${FAULT_KINDS.join(', ')}.`)
  if (!(probability >= 0 && probability <= 1))
    throw new InvalidArgumentError('Expected a probability from 0 to 1.')
  if (given.status !== undefined && !(given.status >= 200 && given.status <= 599))
    throw new InvalidArgumentError('Expected a status from 200 to 599.')
  return [...before, { ...given, kind, probability }]
}

function parseShortFault(text: string): Partial<Fault> {
  const [name, probability, status] = text.split(':')
  const kind = FAULT_KINDS.find(each => each === name)
  return {
    ...(kind && { kind }),
    ...(probability !== undefined && { probability: Number(probability) }),
    ...(status !== undefined && { status: parseWholeNumber(status) }),
  }
}

function parseJson(text: string): Partial<Fault> {
  try {
    return JSON.parse(text)
  } catch {
    throw new InvalidArgumentError('Expected a JSON object.')
  }
}

function simulatorOptions(flags: Flags): SimulatorOptions {
  const { key, workspace, latency, limit, hint, fault, security, bot, overviewsAfter, ...same } = flags
  const { meetingList, playbookList, objectList, meetingListId, unstatedSingle, unreadyResults } = flags
  const envelopes = { meetingList, playbookList, objectList, meetingListId, unstatedSingle, unreadyResults }
  const model: LimitModel | undefined = limit && { ...limit, hint, rateHeaders: flags.rateHeaders ?? false }
  return {
    ...same,
    apiKey: key,
    workspaceId: workspace,
    latencyMs: latency,
    faults: fault,
    securityOption: security,
    botConfigured: bot,
    envelopes: Object.fromEntries(Object.entries(envelopes).filter(([, value]) => value !== undefined)),
    ...(model && { limit: model }),
    ...(overviewsAfter !== undefined && { overviewsCompleteAfterMs: overviewsAfter }),
  }
}

async function start(flags: Flags): Promise<Simulator> {
  const { startSimulator } = await import('../simulator/server.ts')
  try {
    return await startSimulator(simulatorOptions(flags))
  } catch (cause) {
    const isPort = errorCode(cause) !== undefined
    throw new StopError(
      isPort ? `Cannot listen on port ${flags.port} (${errorCode(cause)})` : messageOf(cause),
      {
        code: 'simulator-not-started',
        exitStatus: EXIT_STATUS.usage,
        hint: isPort
          ? 'Choose another --port, or 0 for any free port.'
          : 'Run parley simulate --help for the options.',
        cause,
      },
    )
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : 'The simulator could not start'
}
