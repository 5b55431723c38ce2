/** The settings of the workspace: its bot definition and its integrations. */

export function botDefinition(revision: number): string {
  return JSON.stringify({
    name: revision === 0 ? 'Parley note taker' : `Parley note taker ${revision + 1}`,
    transcription_hints: [
      {
        hint: 'Parley',
        intensity: 0.8,
        language: 'en',
        pronunciations: ['par-lee'],
        replacements: ['Parlay', 'Barley'],
      },
      { hint: '商談', intensity: 1, language: 'ja', pronunciations: ['しょうだん'], replacements: [] },
      {
        hint: 'SSO',
        intensity: 0.5,
        language: 'en',
        pronunciations: ['ess-ess-oh'],
        replacements: ['S.S.O.'],
      },
    ],
    message_on_join: {
      active: true,
      frequency: 'EVERY_MEETING',
      message: 'This meeting is recorded 🎙️ – このミーティングは録音されます。',
    },
  })
}

export function integrationSettings(revision: number): string {
  return JSON.stringify({
    crm: [{ provider: 'SALESFORCE', connected: true, connected_at: '2024-11-05T09:12:44Z' }],
    conferencing: [
      { provider: 'ZOOM', connected: revision % 2 === 0, connected_at: '2024-11-05T09:30:00.120+09:00' },
    ],
  })
}
