import type { ApiSettings } from '../config/load-settings.ts'
import { needsToken } from '../server/access/access-token.ts'
import { createFinder, type Finding } from './finding.ts'

/** A finding when the daemon would not start its status server. */
export function statusServerFindings({ listen, token }: ApiSettings['http']): Finding[] {
  if (!needsToken(listen) || token !== undefined) return []
  return [
    createFinder('status server').warning(
      `the daemon runs without it, since other machines can reach ${listen.host} and http.token is not set`,
      'Set http.token, or listen on 127.0.0.1 in http.listen.',
    ),
  ]
}
