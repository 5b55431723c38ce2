import { expect, test } from 'vitest'
import { readListedPage } from '../../../src/publish/storage/s3/answers.ts'
import { readXml } from '../../../src/publish/storage/s3/xml.ts'

test('elements, text, attributes and entities of XML are read', () => {
  const xml = '<?xml version="1.0"?>\n<r a="1"> <k>a&amp;b&lt;&#65;&#x1F600;&quot;</k><e/><s x=\'y\' /></r>\n'
  expect(readXml(xml)).toEqual({
    name: 'r',
    text: ' ',
    children: [
      { name: 'k', text: 'a&b<A😀"', children: [] },
      { name: 'e', text: '', children: [] },
      { name: 's', text: '', children: [] },
    ],
  })
})

test.each([
  '',
  'text',
  '<a>',
  '</a>',
  '<a></b>',
  '<a/><b/>',
  '<a/>text',
  '<a',
  '<a>&unknown;</a>',
  '<a>a & b</a>',
  '<a>&#x110000;</a>',
  '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
  '<a><![CDATA[b]]></a>',
  `${'<a>'.repeat(50)}${'</a>'.repeat(50)}`,
])('%j is not read as XML', xml => {
  expect(readXml(xml)).toBeUndefined()
})

test.each([
  ['another document', '<html/>'],
  [
    'a key that is not encoded as announced',
    '<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%zz</Key></Contents></ListBucketResult>',
  ],
  ['an object without a key', '<ListBucketResult><Contents/></ListBucketResult>'],
  ['more keys without a token', '<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>'],
])('a listing that is %s is refused', (_, xml) => {
  expect(readListedPage(Buffer.from(xml))).toBeUndefined()
})
