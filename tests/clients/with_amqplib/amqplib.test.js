// amqplib, what Node programs speak AMQP with. Run by `node --test`; the broker's address is in OVERTAKE_AMQP_URL.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { afterEach, beforeEach, test } from 'node:test';

import amqp from 'amqplib';

let connection;

beforeEach(async () => {
  connection = await amqp.connect(process.env.OVERTAKE_AMQP_URL);
  connection.on('error', () => {});
});

afterEach(() => connection.close());

async function declare(channel, options = {}) {
  return (await channel.assertQueue('', { exclusive: true, ...options })).queue;
}

function publish(channel, queue, bodies, options = {}) {
  for (const body of bodies) channel.sendToQueue(queue, Buffer.from(body), options);
}

/** The next `count` messages, as they come; `settle` says what to do with each. */
function take(channel, queue, count, settle = (message) => channel.ack(message)) {
  const taken = [];
  return new Promise((resolve, reject) => {
    const hear = (message) => {
      taken.push(message);
      Promise.resolve(settle(message)).catch(reject);
      if (taken.length === count) resolve(taken);
    };
    channel.consume(queue, hear).catch(reject);
  });
}

const texts = (messages) => messages.map((message) => message.content.toString());

/** The channel is lost, with this code. */
async function closes(channel, code, attempt) {
  const closed = once(channel, 'error');
  await assert.rejects(attempt(channel));
  const [error] = await closed;
  assert.equal(error.code, code);
}

test('urgent overtakes bulk', async () => {
  const channel = await connection.createConfirmChannel();
  const queue = await declare(channel, { maxPriority: 9 });
  for (let turn = 0; turn < 50; turn++) publish(channel, queue, [`${turn % 10}`], { priority: turn % 10 });
  await channel.waitForConfirms();
  const expected = Array.from({ length: 50 }, (_, at) => `${9 - Math.floor(at / 5)}`);
  assert.deepEqual(texts(await take(channel, queue, 50)), expected);
});

test('urgent overtakes what a busy consumer has not got yet', async () => {
  const channel = await connection.createConfirmChannel();
  const queue = await declare(channel, { maxPriority: 9 });
  publish(channel, queue, ['bulk 1', 'bulk 2'], { priority: 1 });
  await channel.waitForConfirms();
  await channel.prefetch(1);
  let first = true;
  const got = await take(channel, queue, 3, async (message) => {
    if (first) {
      first = false;
      publish(channel, queue, ['urgent'], { priority: 9 });
      await channel.waitForConfirms();
    }
    channel.ack(message);
  });
  assert.deepEqual(texts(got), ['bulk 1', 'urgent', 'bulk 2']);
});

test('what is put back keeps its place and says so', async () => {
  const channel = await connection.createChannel();
  const queue = await declare(channel);
  publish(channel, queue, ['a', 'b', 'c']);
  const first = await channel.get(queue);
  await channel.get(queue);
  channel.nack(first, false, true);
  const again = await channel.get(queue);
  assert.deepEqual([again.content.toString(), again.fields.redelivered], ['a', true]);
  assert.equal((await channel.get(queue)).content.toString(), 'c');
  assert.equal(await channel.get(queue), false);
});

test('a dead letter tells its story', async () => {
  const channel = await connection.createChannel();
  const graveyard = await declare(channel);
  const queue = await declare(channel, { deadLetterExchange: '', deadLetterRoutingKey: graveyard, messageTtl: 50 });
  publish(channel, queue, ['a'], { headers: { mine: 'kept' }, messageId: 'm-1' });
  const [dead] = await take(channel, graveyard, 1);
  const [death] = dead.properties.headers['x-death'];
  assert.deepEqual([death.reason, death.queue, death.count], ['expired', queue, 1]);
  assert.deepEqual([dead.properties.headers.mine, dead.properties.messageId], ['kept', 'm-1']);
});

test('a thousand confirms', async () => {
  const channel = await connection.createConfirmChannel();
  const queue = await declare(channel);
  publish(channel, queue, Array.from({ length: 1000 }, (_, turn) => `${turn}`), { persistent: true });
  await channel.waitForConfirms();
  assert.equal((await channel.checkQueue(queue)).messageCount, 1000);
});

test('a full queue that refuses says no', async () => {
  const channel = await connection.createConfirmChannel();
  const queue = await declare(channel, { maxLength: 1, overflow: 'reject-publish' });
  publish(channel, queue, ['a', 'b']);
  await assert.rejects(channel.waitForConfirms(), /nacked/);
});

test('what nobody wants comes back', async () => {
  const channel = await connection.createChannel();
  const returned = once(channel, 'return');
  channel.publish('', 'nobody at all', Buffer.from('lost'), { mandatory: true });
  const [message] = await returned;
  assert.deepEqual([message.fields.replyCode, message.content.toString()], [312, 'lost']);
});

test('a topic exchange feeds a fanout exchange, and what nobody wants goes to the alternate', async () => {
  const channel = await connection.createChannel();
  const name = `clients-${process.pid}-${Date.now()}`;
  await channel.assertExchange(`${name}-rest`, 'fanout', { autoDelete: true });
  await channel.assertExchange(`${name}-source`, 'topic', { autoDelete: true, alternateExchange: `${name}-rest` });
  await channel.assertExchange(`${name}-target`, 'fanout', { autoDelete: true });
  await channel.bindExchange(`${name}-target`, `${name}-source`, 'urgent.#');
  const wanted = await declare(channel);
  const rest = await declare(channel);
  await channel.bindQueue(wanted, `${name}-target`, '');
  await channel.bindQueue(rest, `${name}-rest`, '');
  for (const key of ['urgent.mail', 'bulk.mail']) channel.publish(`${name}-source`, key, Buffer.from(key));
  assert.deepEqual(texts(await take(channel, wanted, 1)), ['urgent.mail']);
  assert.deepEqual(texts(await take(channel, rest, 1)), ['bulk.mail']);
});

test('an answer comes directly', async () => {
  const server = await connection.createChannel();
  const client = await connection.createChannel();
  const requests = await declare(server);
  await server.consume(requests, (message) => {
    const { replyTo, correlationId } = message.properties;
    server.sendToQueue(replyTo, Buffer.from(`${2 * Number(message.content)}`), { correlationId });
    server.ack(message);
  });
  const answers = new Map();
  const all = new Promise((resolve) => {
    const hear = (message) => {
      answers.set(message.properties.correlationId, message.content.toString());
      if (answers.size === 10) resolve();
    };
    client.consume('amq.rabbitmq.reply-to', hear, { noAck: true }).then(() => {
      for (let turn = 0; turn < 10; turn++) {
        publish(client, requests, [`${turn}`], { correlationId: `c${turn}`, replyTo: 'amq.rabbitmq.reply-to' });
      }
    });
  });
  await all;
  for (let turn = 0; turn < 10; turn++) assert.equal(answers.get(`c${turn}`), `${2 * turn}`);
});

test('a consumer is told that its queue is gone', async () => {
  const channel = await connection.createChannel();
  const queue = await declare(channel);
  const told = new Promise((resolve) => channel.consume(queue, resolve));
  await (await connection.createChannel()).deleteQueue(queue);
  assert.equal(await told, null);
});

test('errors have their codes', async () => {
  const queue = `clients-${process.pid}-${Date.now()}`;
  await closes(await connection.createChannel(), 404, (channel) => channel.checkQueue('nobody at all'));
  await closes(await connection.createChannel(), 403, (channel) => channel.assertExchange('amq.mine', 'direct'));
  await (await connection.createChannel()).assertQueue(queue, { exclusive: true });
  await closes(await connection.createChannel(), 406, (channel) => channel.assertQueue(queue, { exclusive: true, maxPriority: 3 }));
  const other = await amqp.connect(process.env.OVERTAKE_AMQP_URL);
  await closes(await other.createChannel(), 405, (channel) => channel.checkQueue(queue));
  await other.close();
});

test('every kind of header arrives as it was sent', async () => {
  const channel = await connection.createChannel();
  const queue = await declare(channel);
  const headers = {
    text: 'grüße', yes: true, small: 7, negative: -7, large: 2 ** 40, float: 1.5, nothing: null,
    list: [1, 'two', [null], { four: 4 }], table: { in: { in: 'deep' } },
  };
  publish(channel, queue, ['a'], { headers });
  assert.deepEqual((await channel.get(queue)).properties.headers, headers);
});

test('a body of many frames arrives whole', async () => {
  const channel = await connection.createChannel();
  const queue = await declare(channel);
  const body = Buffer.alloc(1_000_000, 'overtake');
  channel.sendToQueue(queue, body);
  assert.ok((await channel.get(queue)).content.equals(body));
});

test('a new secret is taken', async () => {
  await connection.updateSecret(Buffer.from('guest'), 'rotation');
  await connection.createChannel();
});
