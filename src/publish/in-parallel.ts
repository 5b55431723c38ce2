/** Calls `work` for each item, with at most `most` calls in progress. The results are in the order of the items. */
export async function inParallel<Item, Result>(
  items: Iterable<Item>,
  most: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const waiting = [...items].entries()
  const results: Result[] = []
  const workInTurn = async () => {
    for (const [place, item] of waiting) results[place] = await work(item)
  }
  await Promise.all(Array.from({ length: most }, workInTurn))
  return results
}
