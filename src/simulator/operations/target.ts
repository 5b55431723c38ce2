import { findRoute, type Route } from './routes.ts'

/** What a request asks for. */
export interface RequestTarget {
  path: string
  query: string
  route: Route | undefined
  /** The template of the route; for an unknown route, the path. */
  template: string
}

export function targetOf(url: string): RequestTarget {
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const query = mark < 0 ? '' : url.slice(mark + 1)
  const route = findRoute(path)
  return {
    path,
    query,
    route: route && { ...route, parameters: route.parameters.map(decodeParameter) },
    template: route?.operation.template ?? path,
  }
}

/** A path parameter with a malformed escape stays unchanged. It then matches no item. */
function decodeParameter(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
