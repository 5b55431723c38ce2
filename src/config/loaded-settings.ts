/** The types of the settings as they are used, and of what reading them needs and gives. */

import type { ProxyRules } from '../base/proxies.ts'
import type { User } from './file-access.ts'
import type { SettingKind } from './kinds.ts'
import type { SECTIONS, SETTINGS, SettingKey } from './settings.ts'

type Camel<Text extends string> = Text extends `${infer Head}.${infer Tail}`
  ? `${Camel<Head>}${Capitalize<Camel<Tail>>}`
  : Text extends `${infer Head}_${infer Tail}`
    ? `${Head}${Capitalize<Camel<Tail>>}`
    : Text

type Section = keyof typeof SECTIONS

type SettingValue<Key extends SettingKey> =
  (typeof SETTINGS)[Key]['kind'] extends SettingKind<infer T>
    ? (typeof SETTINGS)[Key] extends { default: unknown }
      ? T
      : T | undefined
    : never

/** The name of a setting in this section, but not in a section below this one. */
type NameIn<S extends string, Key extends string> = Key extends `${S}.${infer Name}`
  ? Name extends `${string}.${string}`
    ? never
    : Camel<Name>
  : never

/** Every setting under its section, both in camelCase: `api.max_concurrency` is `settings.api.maxConcurrency`. */
export type SectionSettings = {
  readonly [S in Section as Camel<S>]: {
    readonly [Key in SettingKey as NameIn<S, Key>]: SettingValue<Key>
  }
}

export type Settings = SectionSettings & {
  /** The proxies of `api.proxy` and of the environment variables that other programs read too. */
  readonly proxies: ProxyRules
}

/** Settings that are complete for requests to the API. */
export type ApiSettings = Settings & {
  readonly api: {
    readonly baseUrl: string
    readonly key: string
    readonly workspaceId: string
    readonly keySource: SettingSource
  }
}

/** Where a value came from, so that a message can say what to change. */
export interface SettingSource {
  /** `file`: the settings file, or the separate file of a secret. */
  by: 'credential' | 'environment' | 'file' | 'flag' | 'default'
  /** The source as in `LoadedSettings.sources`. */
  text: string
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Flags as given. The flag of a secret is the path of a file that contains the secret. */
export type SettingFlags = { readonly [Key in SettingKey | 'config']?: string | undefined }

export interface SettingsRequest {
  flags: SettingFlags
  env: Environment
  cwd: string
  /** Default: the user of this process. */
  user?: User
  /** Whether the command sends requests to the API. If not, API settings may be missing and no secret file is read. */
  requireApi: boolean
  /** Secrets whose files are read although the command sends no requests to the API. */
  secrets?: readonly SettingKey[]
  /** The names that `sync.resources` may contain; when undefined, the names are not checked. */
  resourceNames?: readonly string[]
  /**
   * The names that `publish.tables` may contain, next to those of CRM objects; when undefined, the names are not
   * checked.
   */
  tableNames?: readonly string[]
  /**
   * The settings that the caller uses (default: all). An invalid value of any other setting is only a warning, and its
   * default applies.
   */
  used?: readonly SettingKey[]
}

export interface LoadedSettings<S extends Settings = Settings> {
  settings: S
  /**
   * Sentences about settings that work but should be changed, and about wrong settings that the caller does not use.
   */
  warnings: string[]
  /**
   * Where each value came from: a file's path, `environment NAME`, `flag --name`, or `default`. For a secret in a
   * separate file, the source is the path of that file and the place that names it. A systemd credential has no path,
   * since no one can edit the copy that the service reads.
   */
  sources: Readonly<Record<SettingKey, string>>
  /** The settings file that was read, if there was one. */
  file: string | undefined
}
