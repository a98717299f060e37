//! Class basic (1.8): messages. Tickets are of 0-8 and mean nothing.

use overtake_properties::{Short, ShortText, TableRef};

class! { 60 "basic";
    /// How much may be out at once; `global` is for the channel, otherwise for each new consumer (RabbitMQ).
    10 "qos" Qos { prefetch_size: u32, prefetch_count: u16, global: bool }

    /// That holds now.
    11 "qos-ok" QosOk {}

    /// Take messages from now on.
    20 "consume" Consume<'a> {
        ticket: u16,
        queue: ShortText<'a>,
        consumer_tag: ShortText<'a>,
        no_local: bool,
        no_ack: bool,
        exclusive: bool,
        no_wait: bool,
        arguments: TableRef<'a>,
    }

    /// The consumer is there.
    21 "consume-ok" ConsumeOk<'a> { consumer_tag: ShortText<'a> }

    /// Take no more; from a server, that there is no more to be taken (RabbitMQ).
    30 "cancel" Cancel<'a> { consumer_tag: ShortText<'a>, no_wait: bool }

    /// The consumer is gone.
    31 "cancel-ok" CancelOk<'a> { consumer_tag: ShortText<'a> }

    /// A message for an exchange. Content follows.
    40 "publish" Publish<'a> {
        ticket: u16,
        exchange: Short<'a>,
        routing_key: Short<'a>,
        mandatory: bool,
        immediate: bool,
    }

    /// A message that nobody took. Content follows.
    50 "return" Return<'a> {
        reply_code: u16,
        reply_text: Short<'a>,
        exchange: Short<'a>,
        routing_key: Short<'a>,
    }

    /// A message for a consumer. Content follows.
    60 "deliver" Deliver<'a> {
        consumer_tag: Short<'a>,
        delivery_tag: u64,
        redelivered: bool,
        exchange: Short<'a>,
        routing_key: Short<'a>,
    }

    /// One message, please.
    70 "get" Get<'a> { ticket: u16, queue: ShortText<'a>, no_ack: bool }

    /// Here it is; so many more are ready. Content follows.
    71 "get-ok" GetOk<'a> {
        delivery_tag: u64,
        redelivered: bool,
        exchange: Short<'a>,
        routing_key: Short<'a>,
        message_count: u32,
    }

    /// There is none.
    72 "get-empty" GetEmpty<'a> { cluster_id: ShortText<'a> }

    /// A message is done with; with `multiple`, all up to it. From a server: it is safe (RabbitMQ).
    80 "ack" Ack { delivery_tag: u64, multiple: bool }

    /// A message goes back, or away.
    90 "reject" Reject { delivery_tag: u64, requeue: bool }

    /// All that is out goes back. No answer comes.
    100 "recover-async" RecoverAsync { requeue: bool }

    /// All that is out goes back.
    110 "recover" Recover { requeue: bool }

    /// It did.
    111 "recover-ok" RecoverOk {}

    /// As reject, for many (RabbitMQ). From a server: it was not taken.
    120 "nack" Nack { delivery_tag: u64, multiple: bool, requeue: bool }
}
