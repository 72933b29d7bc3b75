// node main.mjs publish 127.0.0.1:7400 orders,audit "a message" "another one"
// node main.mjs read 127.0.0.1:7400 orders
import { Client } from './ordercast.mjs'

const [, , what, addresses, groups, ...payloads] = process.argv
const client = new Client(...addresses.split(','))
const shown = (key, value) => typeof value === 'bigint' ? Number(value) : value?.type === 'Buffer' ? Buffer.from(value).toString('hex') : value
if (what === 'publish') {
  for (const receipt of await Promise.all(payloads.map((payload) => client.publish(groups.split(','), payload)))) {
    console.log(JSON.stringify(receipt, shown))
  }
} else {
  for await (const delivery of client.read(groups, { stopAtEnd: true })) {
    console.log(JSON.stringify({ ...delivery, payload: delivery.payload.toString() }, shown))
  }
}
client.close()
