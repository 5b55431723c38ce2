/** What happens to a value when its row is deleted at the source, and when the content of the row is purged. Pure. */

/** The words of `data_dictionary.value_on_delete`. */
export const VALUES_ON_DELETE = {
  kept: 'it stays as it was',
  set: 'parley sets it when the row is deleted',
  purged:
    'it becomes NULL when the content of the row is purged, `retention.withdrawn_days` after the deletion',
  reset: 'it stays until the purge, and then is as if nothing had been read',
  recomputed: 'it is computed again from what is left',
  'row purged': 'the row is removed when the content is purged',
  'row removed': 'the row is removed, or leaves the view, at the deletion',
} as const

export type ValueOnDelete = keyof typeof VALUES_ON_DELETE
