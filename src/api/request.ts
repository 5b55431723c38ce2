/** One request as data: what the scheduler counts, the log names and the client sends. */
export interface ApiRequest {
  resource: string
  /** The route template for counting and logs, such as `/v2/messages/{id}`: it never holds an id. */
  route: string
  /** The path below the base URL with a leading slash, its segments already encoded (`fillPath`). */
  path: string
  /** Not yet encoded; empty values are sent as they are. */
  query?: Readonly<Record<string, string>>
}

/**
 * The path of a route template with every `{name}` replaced by its encoded value. Values come from the API and
 * may hold anything: slashes, dot segments and broken surrogates become harmless text.
 * @throws Error when the template names a parameter that is not given.
 */
export function fillPath(template: string, params: Readonly<Record<string, string>>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name]
    if (value === undefined) throw new Error(`The route ${template} needs a value for {${name}}`)
    return value === '.' || value === '..' ? value.replaceAll('.', '%2E') : encodeText(value)
  })
}

/** The path with its encoded query string, as it stands on the wire below the base URL. */
export function pathWithQuery({ path, query }: Pick<ApiRequest, 'path' | 'query'>): string {
  let text = path
  let separator = '?'
  for (const name in query) {
    text += `${separator}${encodeText(name)}=${encodeText(query[name] ?? '')}`
    separator = '&'
  }
  return text
}

/** Percent-encodes text; half of a surrogate pair, which has no encoding, becomes U+FFFD. */
function encodeText(text: string): string {
  return encodeURIComponent(text.replace(/[\ud800-\udfff]/gu, '\ufffd'))
}
