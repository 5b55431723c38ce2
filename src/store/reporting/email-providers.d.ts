/** Domains at which anybody can have an address. */
declare module 'email-providers' {
  const domains: readonly string[]
  export default domains
}
