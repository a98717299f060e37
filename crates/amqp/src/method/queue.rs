//! Class queue (1.7). Tickets are of 0-8 and mean nothing.

use overtake_properties::{ShortText, TableRef};

class! { 50 "queue";
    /// Make a queue, or look whether it is there; without a name, the server makes one up.
    10 "declare" Declare<'a> {
        ticket: u16,
        queue: ShortText<'a>,
        passive: bool,
        durable: bool,
        exclusive: bool,
        auto_delete: bool,
        no_wait: bool,
        arguments: TableRef<'a>,
    }

    /// It is there, with so many messages that are ready and so many consumers.
    11 "declare-ok" DeclareOk<'a> { queue: ShortText<'a>, message_count: u32, consumer_count: u32 }

    /// Tie a queue to an exchange.
    20 "bind" Bind<'a> {
        ticket: u16,
        queue: ShortText<'a>,
        exchange: ShortText<'a>,
        routing_key: ShortText<'a>,
        no_wait: bool,
        arguments: TableRef<'a>,
    }

    /// It is tied.
    21 "bind-ok" BindOk {}

    /// Empty a queue.
    30 "purge" Purge<'a> { ticket: u16, queue: ShortText<'a>, no_wait: bool }

    /// So many messages are gone.
    31 "purge-ok" PurgeOk { message_count: u32 }

    /// Delete a queue.
    40 "delete" Delete<'a> {
        ticket: u16,
        queue: ShortText<'a>,
        if_unused: bool,
        if_empty: bool,
        no_wait: bool,
    }

    /// It is gone, with so many messages.
    41 "delete-ok" DeleteOk { message_count: u32 }

    /// Untie a queue from an exchange.
    50 "unbind" Unbind<'a> {
        ticket: u16,
        queue: ShortText<'a>,
        exchange: ShortText<'a>,
        routing_key: ShortText<'a>,
        arguments: TableRef<'a>,
    }

    /// It is not tied any more.
    51 "unbind-ok" UnbindOk {}
}
