import { EXIT_STATUS, errorCode, StopError } from '../base/errors.ts'
import { pagePath } from '../base/installation.ts'

/** What is wrong with settings, and how that is said. */

export interface Problem {
  text: string
  /** The setting or section that is wrong, or that was probably meant. */
  about?: string | undefined
  /** A specific hint; by default the hint names the settings page. */
  hint?: string
}

/** All problems are collected, so that one run reports everything. */
export interface SettingFindings {
  problems: Problem[]
  warnings: string[]
}

export function settingsError(problems: readonly Problem[], cause?: unknown): StopError {
  const texts = problems.map(({ text }) => text)
  const message =
    texts.length === 1
      ? `Invalid settings: ${texts[0]}`
      : `Invalid settings, ${texts.length} problems:\n${texts.map(text => `  ${text}`).join('\n')}`
  return new StopError(message, {
    code: 'bad-settings',
    exitStatus: EXIT_STATUS.settings,
    hint: hintFor(problems),
    cause,
  })
}

export const settingsPage = (): string => `${pagePath('config/README.md')} explains every setting.`

/** The common hint of all problems, or the settings page. */
function hintFor(problems: readonly Problem[]): string {
  const [hint, ...others] = new Set(problems.map(problem => problem.hint))
  return others.length === 0 ? (hint ?? settingsPage()) : settingsPage()
}

export const suggestionText = (meant: string | undefined): string => (meant ? `; did you mean ${meant}?` : '')

/** A wrong value in a message, without a URL that may contain a password, and cut to 100 characters. */
export function displayText(value: unknown): string {
  if (typeof value === 'string' && /\/\/[^/]*@/.test(value)) return 'a URL with a user name (not shown)'
  const text = typeof value === 'number' ? String(value) : JSON.stringify(value)
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}

const FILE_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of its path is not a folder',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
}

export function faultText(error: unknown): string {
  const code = errorCode(error) ?? String(error)
  const says = FILE_FAULTS[code]
  return says === undefined ? code : `${code} (${says})`
}
