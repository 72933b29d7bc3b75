// A client for Ordercast in plain Node, without a library: written from docs/wire.md, and as small as it gets.
import { randomBytes } from 'node:crypto'
import http2 from 'node:http2'

// ---- Protobuf: a message is a list of [field number, value]; numbers become varints, everything else bytes.
const varint = (value) => {
  const bytes = []
  for (let rest = BigInt(value); ; rest >>= 7n) {
    bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0))
    if (rest <= 127n) return Buffer.from(bytes)
  }
}
const encode = (fields) => Buffer.concat(fields.flatMap(([number, value]) => {
  if (['number', 'bigint'].includes(typeof value)) return [varint(number << 3), varint(value)]
  const bytes = Array.isArray(value) ? encode(value) : Buffer.from(value)
  return [varint(number << 3 | 2), varint(bytes.length), bytes]
}))

// What comes: for each field number all of its values, numbers as BigInt and everything else as bytes.
function decode(bytes) {
  const found = {}
  let at = 0
  const number = () => {
    for (let value = 0n, shift = 0n; at < bytes.length; shift += 7n) {
      const byte = bytes[at++]
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
    throw new Error('a message is cut short')
  }
  while (at < bytes.length) {
    const tag = Number(number())
    let value
    if ((tag & 7) === 0) value = number()
    else {
      const length = (tag & 7) === 2 ? Number(number()) : (tag & 7) === 1 ? 8 : 4
      value = bytes.subarray(at, at += length)
    }
    ;(found[tag >> 3] ??= []).push(value)
  }
  return found
}
const one = (message, number) => message[number]?.at(-1)
const int = (message, number) => one(message, number) ?? 0n
const text = (message, number) => (one(message, number) ?? '').toString()
const many = (message, number) => (message?.[number] ?? []).map(decode)
const part = (message, number) => decode(one(message, number) ?? Buffer.alloc(0))

// ---- gRPC: each message behind a zero and its length, and the outcome in the trailers.
const failed = (status, message) => Object.assign(new Error(message), { status: Number(status) })

// CANCELLED, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED, INTERNAL, UNAVAILABLE: it may be stored, or be over soon.
const REPEATED = [1, 4, 8, 10, 13, 14]

export class Client {
  constructor(...addresses) {
    this.addresses = addresses
    this.producer = Buffer.concat([Buffer.from([255]), randomBytes(15)])
    this.session = Buffer.alloc(0)
    this.cells = new Map() // By group.
    this.sequences = new Map() // By set of cells.
    this.turn = Promise.resolve() // The latest publish.
  }

  connection() {
    if (this.link?.destroyed !== false) this.link = http2.connect(`http://${this.addresses[0]}`).on('error', () => {})
    return this.link
  }

  close = () => this.link?.destroy()
  // On to the next gateway, after a while that differs from client to client.
  async leave(wait) {
    this.addresses.push(this.addresses.shift())
    this.close()
    await new Promise((resolve) => setTimeout(resolve, wait * (1 - Math.random() / 2)))
  }

  async * call(method, request, { isOpen = false } = {}) {
    const path = `/ordercast.v1.GatewayService/${method}`
    const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' }
    const stream = this.connection().request(headers)
    let outcome = {}
    for (const event of ['response', 'trailers']) stream.on(event, (headers) => { outcome = headers })
    const bytes = encode(request)
    const length = Buffer.alloc(5)
    length.writeUInt32BE(bytes.length, 1)
    stream[isOpen ? 'write' : 'end'](Buffer.concat([length, bytes]))
    try {
      let rest = Buffer.alloc(0)
      for await (const chunk of stream) {
        rest = Buffer.concat([rest, chunk])
        while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
          const end = 5 + rest.readUInt32BE(1)
          yield decode(rest.subarray(5, end))
          rest = rest.subarray(end)
        }
      }
    } catch (error) {
      throw failed(14, error.message)
    } finally {
      stream.close(http2.constants.NGHTTP2_CANCEL)
    }
    const { 'grpc-status': status = 14, 'grpc-message': message = 'the connection broke' } = outcome
    if (Number(status)) throw failed(status, decodeURIComponent(message))
  }

  // Until it succeeds, or fails for good.
  async ask(method, request) {
    for (let wait = 50; ; wait = Math.min(wait * 2, 2000)) {
      try {
        for await (const response of this.call(method, request)) return response
      } catch (error) {
        if (!REPEATED.includes(error.status)) throw error
        await this.leave(wait)
      }
    }
  }

  async cellOf(group) {
    const asked = () => this.ask('DescribeGroup', [[1, group]])
    if (!this.cells.has(group)) this.cells.set(group, nameOf(text(part(await asked(), 1), 20) || group))
    return this.cells.get(group)
  }

  // One after the other, so that a number is never under way together with a later one. Resolves to the receipt.
  publish(groups, payload) {
    this.turn = this.turn.catch(() => {}).then(() => this.publishNow([...groups].sort(), payload))
    return this.turn
  }

  async publishNow(groups, payload) {
    const cells = [...new Set(await Promise.all(groups.map((group) => this.cellOf(group))))].sort()
    const set = cells.join('\0')
    const sequence = (this.sequences.get(set) ?? 0n) + 1n
    const request = [[1, this.producer], ...groups.map((group) => [3, group]), [4, sequence], [5, [[1, payload]]], [7, this.session]]
    if (set !== groups.join('\0')) request.push(...cells.map((cell) => [10, cell]))
    const [reply] = many(await this.ask('Publish', request), 1)
    this.sequences.set(set, sequence) // A refused one can have its number again: no copy of it is left.
    this.see(one(reply, 12))
    const offsets = Object.fromEntries(many(reply, 8).map((offset) => [text(offset, 1), int(offset, 2)]))
    return { cells, sequence, orderKey: one(reply, 7), offsets, duplicate: int(reply, 9) === 1n }
  }

  // What is published from now on comes behind what the token stands for.
  see(token = Buffer.alloc(0)) {
    const parts = new Map()
    const rows = [this.session, token].flatMap((bytes) => bytes.toString('hex').match(/.{56}/g) ?? [])
    for (const row of rows.sort()) parts.set(row.slice(0, 8), row)
    this.session = Buffer.from([...parts.values()].join(''), 'hex')
  }

  // Deliveries from an offset on, without a gap and without a repetition, whatever breaks; to the end of the log or for ever.
  async * read(group, { offset = 0n, stopAtEnd = false } = {}) {
    for (;;) {
      const start = [[1, group], [2, [[1, offset]]], [4, stopAtEnd ? 1 : 0]]
      try {
        for await (const response of this.call('Subscribe', [[1, start]], { isOpen: !stopAtEnd })) {
          for (const deliveries of many(response, 2)) {
            this.see(one(deliveries, 2))
            for (const entry of many(deliveries, 1)) {
              for (const delivery of unpack(entry).filter((one) => one.offset >= offset)) {
                if (delivery.offset > offset) throw new Error(`offset ${delivery.offset} instead of ${offset}`)
                offset += 1n
                yield delivery
              }
            }
          }
        }
        if (stopAtEnd) return
      } catch (error) {
        if (!REPEATED.includes(error.status)) throw error
        await this.leave(200)
      }
    }
  }
}

const nameOf = (id) => id.split('/').at(-1).split('#')[0]
// The deliveries in an entry of a group's log.
function unpack(entry) {
  const [found, envelope] = [[], part(entry, 2)]
  const header = part(envelope, 1)
  const messages = many(part(envelope, 2), 1)
  const cells = many(header, 2).map((destination) => nameOf(text(destination, 1))).sort()
  let at = 0n
  for (const [index, range] of many(header, 6).entries()) {
    for (const span of many(many(entry, 4)[index], 1).filter((one) => int(one, 5) === 0n)) {
      for (let ahead = 0n; ahead < int(span, 2); ahead++) {
        const sequence = int(span, 1) + ahead
        const payload = one(messages[at + sequence - int(range, 3)], 1) ?? Buffer.alloc(0)
        const [offset, orderKey, producer] = [int(span, 3) + ahead, one(entry, 1), one(range, 1)]
        found.push({ offset, orderKey, payload, producer, cells, sequence })
      }
    }
    at += int(range, 4)
  }
  return found
}
