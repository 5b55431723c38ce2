/**
 * A role is what business questions need from a CRM record, whatever the CRM calls the field. One field holds a role:
 * the settings name that field, or parley guesses it from the CRM's metadata. Data only.
 */
export interface CrmRole {
  /** What the field holds, as a phrase that follows “The field with”. */
  holds: string
  kinds: readonly RoleKind[]
  /** For a relation: what the relation points at. A relation to anything else is no candidate. */
  to?: 'members' | 'company' | 'stage' | 'pipeline'
  /**
   * Names and labels of such fields in other CRMs. Whole names are compared, without case, blanks and punctuation. An
   * earlier name wins over a later one.
   */
  names: readonly string[]
  /** An example for the settings page. */
  example: string
  /** A sentence about what is used where no field holds it. */
  otherwise?: string
}

export type RoleKind = 'text' | 'number' | 'boolean' | 'day' | 'relation'

export type CrmRoles = Readonly<Record<string, CrmRole>>

const OWNER: CrmRole = {
  holds: 'the member who owns it',
  kinds: ['relation'],
  to: 'members',
  names: [
    ...[
      'owner',
      'owner id',
      'record owner',
      'hubspot owner id',
      'user id',
      'assigned user id',
      'assigned to',
      'assignee',
      'sales rep',
    ],
    ...['deal owner', 'opportunity owner', 'account owner', 'company owner', 'contact owner'],
    ...[
      '所有者',
      '担当者',
      '営業担当者',
      '営業担当',
      '主担当',
      '主担当者',
      '自社担当者',
      '商談所有者',
      '案件担当者',
    ],
    ...['Besitzer', 'Inhaber', 'propriétaire', 'propietario'],
  ],
  example: 'owner_id',
}

const COMPANY: CrmRole = {
  holds: 'the company',
  kinds: ['relation'],
  to: 'company',
  names: [
    ...['company', 'company id', 'account', 'account id', 'account name', 'organization', 'org id'],
    ...['associated company', 'parent account', 'parent account id', 'parent customer id', 'customer id'],
    ...['取引先', '取引先名', '取引先企業', '会社', '会社名', '企業', '企業名', '顧客', '顧客名'],
    ...['Firma', 'Unternehmen', 'entreprise', 'société', 'empresa'],
  ],
  example: 'company_id',
}

const DEAL_ROLES = {
  name: {
    holds: 'the name of the deal',
    kinds: ['text'],
    names: [
      ...['name', 'deal name', 'opportunity name', 'title', 'topic', 'subject'],
      ...['案件名', '商談名', '取引名', 'ディール名', '件名'],
    ],
    example: 'name',
  },
  amount: {
    holds: 'what the deal is worth',
    kinds: ['number'],
    names: [
      ...[
        'amount',
        'deal amount',
        'value',
        'deal value',
        'opportunity amount',
        'estimated value',
        'est revenue',
      ],
      ...[
        '金額',
        '商談金額',
        '案件金額',
        '取引金額',
        '受注予定金額',
        '見込金額',
        '見積金額',
        '受注金額',
        '売上見込金額',
      ],
      ...['Betrag', 'montant', 'importe', 'valor'],
    ],
    example: 'amount',
  },
  currency: {
    holds: 'the currency of the amount, as a code such as EUR',
    kinds: ['text', 'relation'],
    names: [
      ...['currency', 'currency code', 'currency iso code', 'deal currency code', 'transaction currency id'],
      ...['通貨', '通貨コード', 'Währung', 'devise', 'moneda'],
    ],
    example: 'currency',
  },
  close_date: {
    holds: 'the day on which the deal is expected to close, or closed',
    kinds: ['day'],
    names: [
      ...['close date', 'closing date', 'expected close date', 'estimated close date', 'est close date'],
      ...[
        '受注予定日',
        '完了予定日',
        'クローズ予定日',
        '契約予定日',
        '成約予定日',
        '受注見込日',
        '売上予定日',
        '受注日',
        '成約日',
      ],
      ...['Abschlussdatum', 'date de clôture', 'fecha de cierre'],
    ],
    example: 'close_date',
  },
  created: {
    holds: 'when the deal was created',
    kinds: ['day'],
    names: [
      ...[
        'created date',
        'create date',
        'created at',
        'created on',
        'created time',
        'creation date',
        'add time',
      ],
      ...[
        '作成日',
        '作成日時',
        '登録日',
        '登録日時',
        'Erstellungsdatum',
        'date de création',
        'fecha de creación',
      ],
    ],
    example: 'created_at',
    otherwise: 'crm_records.created_at, which the API gives, is used.',
  },
  closed_at: {
    holds: 'when the deal was closed',
    kinds: ['day'],
    names: [
      ...['closed at', 'closed on', 'closed date', 'close time', 'actual close date', 'actual closing date'],
      ...['実際の完了日', '決着日', '完了日', 'クローズ日'],
    ],
    example: 'closed_at',
  },
  stage: {
    holds: 'the stage',
    kinds: ['relation', 'text'],
    to: 'stage',
    names: [
      ...['stage', 'stage id', 'stage name', 'deal stage', 'sales stage', 'opportunity stage', 'phase'],
      ...[
        'フェーズ',
        '商談フェーズ',
        '案件フェーズ',
        'ステージ',
        '商談ステージ',
        '営業フェーズ',
        '進捗',
        '受注ステータス',
      ],
      ...['étape', 'etapa'],
    ],
    example: 'stage_id',
  },
  pipeline: {
    holds: 'the pipeline',
    kinds: ['relation', 'text'],
    to: 'pipeline',
    names: ['pipeline', 'pipeline id', 'deal pipeline', 'sales process', 'パイプライン', '商談パイプライン'],
    example: 'pipeline_id',
  },
  company: COMPANY,
  owner: OWNER,
  is_closed: {
    holds: 'whether the deal is closed',
    kinds: ['boolean'],
    names: ['is closed', 'closed', 'hs is closed', '完了', '完了フラグ', 'クローズ済み', 'クローズ'],
    example: 'is_closed',
  },
  is_won: {
    holds: 'whether the deal is won',
    kinds: ['boolean'],
    names: ['is won', 'won', 'hs is closed won', 'is closed won', '受注フラグ', '受注済み', '成約フラグ'],
    example: 'is_won',
  },
  status: {
    holds: 'the state of the deal, such as open, won or lost',
    kinds: ['text'],
    names: [
      ...['status', 'deal status', 'opportunity status', 'state', 'state code'],
      ...[
        'ステータス',
        '案件ステータス',
        '商談ステータス',

        '状態',
        '商談結果',
        '案件結果',
        '結果',
      ],
    ],
    example: 'status',
  },
  probability: {
    holds: 'the probability of winning the deal',
    kinds: ['number'],
    names: [
      ...[
        'probability',
        'win probability',
        'deal probability',
        'close probability',
        'hs deal stage probability',
      ],
      ...['受注確度', '確度', '受注確率', '確率', 'Wahrscheinlichkeit', 'probabilité', 'probabilidad'],
    ],
    example: 'probability',
  },
  forecast_category: {
    holds: 'the category of the forecast',
    kinds: ['text'],
    names: [
      ...['forecast category', 'forecast category name', 'hs manual forecast category'],
      ...['売上予測分類', '予測カテゴリ', 'フォーキャスト'],
    ],
    example: 'forecast_category',
  },
  type: {
    holds: 'the type of the deal',
    kinds: ['text'],
    names: ['type', 'deal type', 'opportunity type', '種別', '案件種別', '商談種別', '取引種別', '契約種別'],
    example: 'deal_type',
  },
  lost_reason: {
    holds: 'why the deal was lost',
    kinds: ['text'],
    names: [
      ...['lost reason', 'loss reason', 'closed lost reason', 'reason for loss', 'reason lost'],
      ...['失注理由', '敗因', '失注要因'],
    ],
    example: 'lost_reason',
  },
  next_step: {
    holds: 'the next step',
    kinds: ['text'],
    names: [
      'next step',
      'hs next step',
      '次のステップ',
      '次回アクション',
      '次のアクション',
      'ネクストアクション',
    ],
    example: 'next_step',
  },
} as const satisfies CrmRoles

const COMPANY_ROLES = {
  name: {
    holds: 'the name of the company',
    kinds: ['text'],
    names: [
      ...['name', 'company name', 'account name', 'organization name'],
      ...['会社名', '企業名', '取引先名', '顧客名'],
    ],
    example: 'name',
  },
  owner: OWNER,
  domain: {
    holds: "the company's domain or website",
    kinds: ['text'],
    names: [
      ...['domain', 'company domain name', 'email domain', 'website', 'website url', 'web site', 'url'],
      ...['ドメイン', 'ホームページ', 'webサイト', 'サイトurl'],
    ],
    example: 'domain',
  },
} as const satisfies CrmRoles

const CONTACT_ROLES = {
  name: {
    holds: 'the name of the person',
    kinds: ['text'],
    names: ['name', 'full name', 'contact name', 'display name', '氏名', '名前', '顧客担当者名'],
    example: 'name',
  },
  first_name: {
    holds: 'the first name, used where the whole name is missing',
    kinds: ['text'],
    names: ['first name', 'given name', '名'],
    example: 'first_name',
  },
  last_name: {
    holds: 'the last name, used where the whole name is missing',
    kinds: ['text'],
    names: ['last name', 'family name', 'surname', '姓'],
    example: 'last_name',
  },
  email: {
    holds: 'the e-mail address',
    kinds: ['text'],
    names: [
      ...['email', 'email address', 'primary email', 'email address 1', 'work email', 'mail'],
      ...['メールアドレス', 'メール', 'eメール', 'email アドレス'],
    ],
    example: 'email',
  },
  owner: OWNER,
  company: COMPANY,
  opted_out: {
    holds: 'whether the person wants no e-mails',
    kinds: ['boolean'],
    names: [
      ...[
        'opted out',
        'email opt out',
        'has opted out',
        'has opted out of email',
        'do not email',
        'do not bulk email',
        'unsubscribed',
      ],
      ...['hs email optout', 'メール送信除外', 'メール配信停止', '配信停止', 'オプトアウト'],
    ],
    example: 'email_opt_out',
  },
  opted_in: {
    holds: 'whether the person agreed to e-mails; used where no field says that somebody wants none',
    kinds: ['boolean'],
    names: [
      'opt in',
      'opted in',
      'email opt in',
      'marketing consent',
      'メール許可',
      '配信許諾',
      'オプトイン',
    ],
    example: 'opt_in',
  },
} as const satisfies CrmRoles

/** The CRM objects with roles: the sections `[crm.deal]`, `[crm.company]` and `[crm.contact]` of the settings. */
export const CRM_ROLES = {
  deal: DEAL_ROLES,
  company: COMPANY_ROLES,
  contact: CONTACT_ROLES,
} as const satisfies Readonly<Record<string, CrmRoles>>

export type RoleObject = keyof typeof CRM_ROLES
