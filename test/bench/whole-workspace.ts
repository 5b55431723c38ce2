/** Sizes of a workspace with all kinds of items: with 100,000 messages, 10,000 meetings and 50,000 records. */
export function wholeWorkspace(messages: number) {
  const tenth = Math.ceil(messages / 10)
  const others = { members: 60, accessLogs: Math.ceil(messages / 2) }
  return { messages, meetings: tenth, deals: tenth, customRecords: Math.ceil(messages / 43), ...others }
}
