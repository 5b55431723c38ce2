/** Query parameters by name, not encoded yet. */
export type Query = Readonly<Record<string, string>>

/** One request as data. */
export interface ApiRequest {
  /** The route template, such as `/v2/messages/{id}`. It has no ids, so metrics and logs may name it. */
  route: string
  /** The path below the base URL with a leading slash. Its parameters are already encoded (`fillPath`). */
  path: string
  /** A parameter with an empty value is sent as `name=`. */
  query?: Query
}

/**
 * @returns the route template with every `{name}` replaced by its encoded value. Values come from the API and may be
 *   any text: slashes, dot segments and lone surrogates are encoded or replaced.
 * @throws Error when a parameter of the template is missing
 */
export function fillPath(template: string, params: Readonly<Record<string, string>>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name]
    if (value === undefined) throw new Error(`The route ${template} needs a value for {${name}}`)
    return value === '.' || value === '..' ? value.replaceAll('.', '%2E') : encodeText(value)
  })
}

/** The path and the encoded query string, relative to the base URL. */
export function pathWithQuery({ path, query }: Pick<ApiRequest, 'path' | 'query'>): string {
  let text = path
  let separator = '?'
  for (const name in query) {
    text += `${separator}${encodeText(name)}=${encodeText(query[name] ?? '')}`
    separator = '&'
  }
  return text
}

/** Percent-encodes text. A lone surrogate, which has no encoding, becomes U+FFFD. */
function encodeText(text: string): string {
  return encodeURIComponent(text.replace(/[\ud800-\udfff]/gu, '\ufffd'))
}
