//! Class confirm, of RabbitMQ: the server says which messages are safe.

class! { 85 "confirm";
    /// From now on, say so on this channel.
    10 "select" Select { no_wait: bool }

    /// It will.
    11 "select-ok" SelectOk {}
}
