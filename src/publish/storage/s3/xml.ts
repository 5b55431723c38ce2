/** A small reader for the XML of S3: elements and text. Anything else, such as a document type, is refused. Pure. */
export interface XmlElement {
  name: string
  children: XmlElement[]
  /** The text directly inside, with the white space around it. */
  text: string
}

/** More than the answers of S3 have, so that no answer can exhaust the memory. */
const DEEPEST = 16

/** A tag, its end, or text, each with the groups that it has. Attributes are skipped. */
const TOKEN =
  /<(?<end>\/)?(?<name>[A-Za-z_][\w.:-]*)(?:\s[^<>]*?)?(?<empty>\/)?>|<\?xml[^<>]*\?>|(?<text>[^<]+)/y

/** @returns the root element, or undefined when the text is not such XML */
export function readXml(xml: string): XmlElement | undefined {
  const top: XmlElement = { name: '', children: [], text: '' }
  const open = [top]
  const token = new RegExp(TOKEN)
  for (let place = 0; place < xml.length; place = token.lastIndex) {
    const groups = token.exec(xml)?.groups
    if (groups === undefined || !applyToken(open, groups)) return undefined
  }
  const [root, ...others] = top.children
  const isWhole = open.length === 1 && others.length === 0 && top.text.trim() === ''
  return isWhole ? root : undefined
}

/** @returns false when the token does not fit */
function applyToken(open: XmlElement[], { end, name, empty, text }: Record<string, string>): boolean {
  const current = open.at(-1)
  if (current === undefined) return false
  if (text !== undefined) {
    const plain = withoutEntities(text)
    current.text += plain ?? ''
    return plain !== undefined
  }
  if (name === undefined) return true
  if (end !== undefined) return open.length > 1 && open.pop()?.name === name
  const element: XmlElement = { name, children: [], text: '' }
  current.children.push(element)
  if (empty === undefined) open.push(element)
  return open.length <= DEEPEST
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Undefined when the text has an entity that XML itself does not define. */
function withoutEntities(text: string): string | undefined {
  let isKnown = true
  const plain = text.replace(/&(?:#x([\da-f]{1,6})|#(\d{1,7})|(\w+));|&/gi, (_, hex, decimal, name) => {
    const character = name === undefined ? characterOf(hex, decimal) : ENTITIES[name]
    isKnown &&= character !== undefined
    return character ?? ''
  })
  return isKnown ? plain : undefined
}

function characterOf(hex: string | undefined, decimal: string | undefined): string | undefined {
  const point = hex === undefined ? Number(decimal ?? Number.NaN) : Number.parseInt(hex, 16)
  return point <= 0x10_ff_ff ? String.fromCodePoint(point) : undefined
}

export const textOf = ({ children }: XmlElement, name: string): string | undefined =>
  children.find(child => child.name === name)?.text
