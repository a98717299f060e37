//! Class exchange (1.6). Tickets are of 0-8 and mean nothing.

use overtake_properties::{ShortText, TableRef};

class! { 40 "exchange";
    /// Make an exchange, or look whether it is there. `kind` is the specification's `type`.
    10 "declare" Declare<'a> {
        ticket: u16,
        exchange: ShortText<'a>,
        kind: ShortText<'a>,
        passive: bool,
        durable: bool,
        auto_delete: bool,
        internal: bool,
        no_wait: bool,
        arguments: TableRef<'a>,
    }

    /// It is there.
    11 "declare-ok" DeclareOk {}

    /// Delete an exchange.
    20 "delete" Delete<'a> { ticket: u16, exchange: ShortText<'a>, if_unused: bool, no_wait: bool }

    /// It is gone.
    21 "delete-ok" DeleteOk {}

    /// Tie an exchange to another (RabbitMQ).
    30 "bind" Bind<'a> {
        ticket: u16,
        destination: ShortText<'a>,
        source: ShortText<'a>,
        routing_key: ShortText<'a>,
        no_wait: bool,
        arguments: TableRef<'a>,
    }

    /// It is tied.
    31 "bind-ok" BindOk {}

    /// Untie an exchange from another (RabbitMQ).
    40 "unbind" Unbind<'a> {
        ticket: u16,
        destination: ShortText<'a>,
        source: ShortText<'a>,
        routing_key: ShortText<'a>,
        no_wait: bool,
        arguments: TableRef<'a>,
    }

    /// It is not tied any more. The number is 51, not 41.
    51 "unbind-ok" UnbindOk {}
}
