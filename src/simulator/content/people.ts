import { at, mix, mixBelow } from '../base/random.ts'

/** Names of people and companies. Some are Japanese, as in a workspace with customers in both languages. */

const GIVEN = [
  'Anna',
  'Ben',
  'Carla',
  'David',
  'Elena',
  'Felix',
  'Grace',
  'Hugo',
  'Ines',
  'Jonas',
  'Kate',
  'Liam',
  'Mara',
  'Noah',
  'Olivia',
  'Paul',
  'Quinn',
  'Rosa',
  'Samuel',
  'Tessa',
  'Uma',
  'Victor',
  'Wendy',
  'Xavier',
  'Yara',
  'Zoe',
  'Aiko',
  'Kenji',
  'Priya',
  'Mateo',
  "D'Arcy",
  'Zoë',
]
const FAMILY = [
  'Baker',
  'Castillo',
  'Dietrich',
  'Evans',
  'Fischer',
  'Garcia',
  'Hughes',
  'Ibrahim',
  'Jensen',
  'Keller',
  'Larsen',
  'Moreau',
  'Nguyen',
  "O'Brien",
  'Patel',
  'Quist',
  'Rossi',
  'Schmidt',
  'Turner',
  'Ueda',
  'Vargas',
  'Walker',
  'Young',
  'Zimmermann',
  'Andersson',
  'Brooks',
  'Chen',
  'Dubois',
  'Müller',
  'Kowalski',
]
const FAMILY_JA = [
  '佐藤',
  '鈴木',
  '高橋',
  '田中',
  '伊藤',
  '渡辺',
  '山本',
  '中村',
  '小林',
  '加藤',
  '吉田',
  '山田',
  '松本',
  '井上',
]
const FAMILY_JA_LATIN = [
  'sato',
  'suzuki',
  'takahashi',
  'tanaka',
  'ito',
  'watanabe',
  'yamamoto',
  'nakamura',
  'kobayashi',
  'kato',
  'yoshida',
  'yamada',
  'matsumoto',
  'inoue',
]
const GIVEN_JA = [
  '陽菜',
  '翔太',
  '美咲',
  '大輔',
  '結衣',
  '健太',
  '由美',
  '直樹',
  '恵子',
  '拓也',
  '真由',
  '誠',
]
const GIVEN_JA_LATIN = [
  'hina',
  'shota',
  'misaki',
  'daisuke',
  'yui',
  'kenta',
  'yumi',
  'naoki',
  'keiko',
  'takuya',
  'mayu',
  'makoto',
]
/** Where private persons have their addresses. */
export const FREE_MAIL_DOMAINS = ['gmail.com', 'yahoo.co.jp'] as const
const FIRST_WORDS = [
  'Northwind',
  'Bluepeak',
  'Harbor',
  'Silverline',
  'Maple',
  'Orchard',
  'Granite',
  'Lumen',
  'Cedar',
  'Atlas',
  'Beacon',
  'Copper',
  'Delta',
  'Ember',
  'Falcon',
  'Glacier',
  'Horizon',
  'Ironwood',
  'Juniper',
  'Kestrel',
  'Lakeside',
  'Meridian',
  'Nimbus',
  'Oakfield',
  'Pioneer',
  'Quarry',
  'Redwood',
  'Summit',
  'Tidewater',
  'Upland',
  'Vertex',
  'Willow',
]
const SECOND_WORDS = [
  'Logistics',
  'Software',
  'Foods',
  'Energy',
  'Health',
  'Robotics',
  'Materials',
  'Finance',
  'Media',
  'Retail',
  'Insurance',
  'Analytics',
  'Travel',
  'Textiles',
  'Security',
  'Mobility',
]
const SUFFIXES = ['Inc.', 'GmbH', 'Ltd', 'K.K.', 'AG', 'LLC', 'S.A.', '& Sons']
const FIRST_JA = ['東和', '日新', '青葉', '光洋', '富岳', '桜井', '大成', '北星']
const SECOND_JA = ['商事', '電機', '物流', '食品', '製作所', 'システムズ']

export interface PersonName {
  name: string
  /** The part of an e-mail address before the @. */
  local: string
}

const JAPANESE_SHARE = 0.22

export function personName(seed: number, salt: number, index: number): PersonName {
  const a = mix(seed, salt, index)
  const b = mix(seed, salt + 1, index)
  if (a / 0x1_0000_0000 < JAPANESE_SHARE) {
    const family = a % FAMILY_JA.length
    const given = b % GIVEN_JA.length
    return {
      name: `${at(FAMILY_JA, family)} ${at(GIVEN_JA, given)}`,
      local: `${at(GIVEN_JA_LATIN, given)}.${at(FAMILY_JA_LATIN, family)}`,
    }
  }
  const given = at(GIVEN, a)
  const family = at(FAMILY, b)
  return { name: `${given} ${family}`, local: latin(`${given}.${family}`) }
}

function latin(text: string): string {
  return text
    .normalize('NFD')
    .replace(/[^A-Za-z.]/g, '')
    .toLowerCase()
}

export interface CompanyName {
  name: string
  domain: string
}

export function companyName(seed: number, salt: number, index: number): CompanyName {
  const kind = mixBelow(seed, salt, index, 100)
  const pick = mix(seed, salt + 1, index)
  if (kind < 15) {
    const name = `${at(FIRST_JA, pick)}${at(SECOND_JA, pick >>> 8)}株式会社`
    return { name, domain: `company${index + 1}.example.jp` }
  }
  const first = at(FIRST_WORDS, pick)
  const second = at(SECOND_WORDS, pick >>> 8)
  const suffix = at(SUFFIXES, pick >>> 16)
  return {
    name: `${first} ${second} ${suffix}`,
    domain: `${first}-${second}-${index + 1}.example`.toLowerCase(),
  }
}
