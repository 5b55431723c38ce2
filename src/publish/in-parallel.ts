/**
 * Calls `work` for each item, with at most `most` calls in progress. Items may take time too; they are made one after
 * the other. The results are in the order of the items. After the first error no call begins, and the error is thrown
 * once the calls in progress have ended.
 */
export async function inParallel<Item, Result>(
  items: Iterable<Item> | AsyncIterable<Item>,
  most: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const waiting = numbered(items)
  const results: Result[] = []
  let failure: { error: unknown } | undefined
  const workInTurn = async () => {
    try {
      for await (const [place, item] of waiting) {
        if (failure) return
        results[place] = await work(item)
      }
    } catch (error) {
      failure ??= { error }
    }
  }
  await Promise.all(Array.from({ length: most }, workInTurn))
  if (failure) throw failure.error
  return results
}

async function* numbered<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
): AsyncGenerator<[place: number, item: Item]> {
  let place = 0
  for await (const item of items) yield [place++, item]
}
