import type { QuestionsMeasured } from './questions.ts'

const WANTED_MS = { one: 100, whole: 1000 }

export function questionsTable({ times }: QuestionsMeasured): string {
  return [
    '| question | rows | median ms | of processor | longest ms | wanted | reached | largest full scan |',
    '|---|---|---|---|---|---|---|---|',
    ...times.map(({ name, isAboutOne, rows, medianMs, medianCpuMs, longestMs, worstScan }) => {
      const wanted = isAboutOne ? WANTED_MS.one : WANTED_MS.whole
      const scan = worstScan ? `${worstScan.name} (${worstScan.rows.toLocaleString('en')})` : ''
      return `| ${name} | ${rows.toLocaleString('en')} | ${medianMs.toFixed(0)} | ${medianCpuMs.toFixed(0)} | ${longestMs.toFixed(0)} | ≤ ${wanted} | ${medianMs <= wanted ? 'yes' : 'no'} | ${scan} |`
    }),
  ].join('\n')
}

export function questionsAbout({ held, written, seconds }: QuestionsMeasured): string {
  const rows = Object.entries(held).map(([table, count]) => `${count.toLocaleString('en')} ${table}`)
  return `The files of drizzle/questions unchanged, on a warehouse with ${rows.join(', ')}, each eleven times in turns, while a daemon writes: ${written.toLocaleString('en')} rows in these ${seconds.toFixed(0)} s.`
}
