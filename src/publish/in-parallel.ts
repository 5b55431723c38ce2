/** Does work for every item, for at most `most` of them at a time. Results are in the order of the items. */
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
