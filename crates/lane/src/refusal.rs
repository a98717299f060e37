//! The broker's "no". Part of the protocol: each wire maps it in one exhaustive `match`.

use std::fmt;

/// Why the broker declines. Nothing has changed when one is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// No queue has that name.
    NoSuchQueue,
    /// No exchange has that name.
    NoSuchExchange,
    /// No such binding.
    NoSuchBinding,
    /// The message is not in the queue: settled, expired, removed, or never there.
    NoSuchMessage,
    /// A name is empty, longer than [`NAME_LEN_MAX`](crate::NAME_LEN_MAX) bytes, or holds control characters; that of a queue or an
    /// exchange is longer than [`QUEUE_NAME_LEN_MAX`](crate::QUEUE_NAME_LEN_MAX) bytes, or holds NUL.
    NameInvalid,
    /// An exchange of that name is there, and this is different about it.
    ExchangeDiffers(&'static str),
    /// The exchange is one of the predeclared ones.
    ExchangeReserved,
    /// Nobody publishes to this exchange; it gets what other exchanges give it.
    ExchangeInternal,
    /// The exchange has bindings and may only be deleted when it has none.
    ExchangeInUse,
    /// A binding of a consistent-hash exchange has for its key a weight, and this is none.
    WeightInvalid,
    /// What is to be remembered with an exchange or binding is longer than
    /// [`ARGUMENTS_LEN_MAX`](crate::ARGUMENTS_LEN_MAX), or a header deeper than [`HEADER_DEPTH_MAX`](crate::HEADER_DEPTH_MAX).
    ArgumentsInvalid,
    /// The setting under this key cannot change while messages are in the queue.
    SettingFixed(&'static str),
    /// The queue would be its own history, or that of one of the histories that follow it.
    HistoryCircular,
    /// The queue holds messages and may only be deleted when empty.
    NotEmpty,
    /// The queue has consumers and may only be deleted when unused.
    InUse,
    /// The number is outside what the queue's scheme takes.
    PriorityOutOfRange,
    /// The name is none of the queue's scheme.
    PriorityUnknown,
    /// The queue already has messages of [`LANES_MAX`](crate::LANES_MAX) priorities.
    TooManyLanes,
    /// `max_length` or `max_bytes` is reached, and this message is not more urgent than what is there, or the queue rejects.
    QueueFull,
    /// The queue is deeper than `reject_below.depth` and this message is under `reject_below.priority`.
    BelowPriority,
    /// The message is larger than `max_message_bytes`, or than `max_bytes`.
    MessageTooLarge,
    /// The message, or all messages of the request together, do not fit one record of the store.
    TooLargeAtOnce,
    /// An id is empty, too long, holds control characters, or looks like one the broker gives.
    IdInvalid,
    /// A message of that id is pending, or in a last-value queue a newer one of that key, so the dead one cannot come back.
    IdPending,
    /// A key is too long or holds control characters.
    KeyInvalid,
    /// The weight of a key is not 1 to [`KEY_WEIGHT_MAX`](crate::KEY_WEIGHT_MAX).
    KeyWeightInvalid,
    /// A message gives its key a weight and has no key.
    KeyWeightAlone,
    /// A `last_value = "key"` queue takes only messages with a key.
    KeyMissing,
    /// The message, or all messages of the transaction, would make more copies than fit one record of the store.
    TooManyCopies,
    /// The message was routed to no queue.
    Unroutable,
    /// The lease is over: settled, expired, or the message was given to somebody else.
    StaleReceipt,
    /// Somebody wants the message back: end the work on it, and settle it. The lease is as it was.
    CancelAsked,
    /// A report is longer than [`REPORT_BYTES_MAX`](crate::REPORT_BYTES_MAX).
    ReportTooLarge,
    /// The message is leased to a consumer.
    Leased,
    /// The message is a dead letter; replay it first.
    Dead,
    /// The message is no dead letter.
    NotDead,
    /// The consumer's id is in use.
    ConsumerKnown,
    /// No consumer has that id.
    NoSuchConsumer,
    /// The queue belongs to another session.
    QueueLocked,
    /// A queue of that name is there, with another identity or other settings; its view says which.
    QueueDiffers,
    /// The queue has a consumer that wants to be the only one, or has consumers while this one wants to be.
    ConsumerExclusive,
    /// The queue has as many consumers and waiting pulls as its `max_consumers` allows.
    TooManyConsumers,
    /// No queue has this number whose definition was lost.
    NoSuchOrphan,
    /// A queue has this name.
    QueueExists,
    /// No more than [`QUEUES_MAX`](crate::QUEUES_MAX) queues.
    TooManyQueues,
    /// There is no such virtual host, or none any more.
    NoSuchVhost,
    /// The virtual host `/` is always there.
    VhostReserved,
    /// What is said of a virtual host is longer than [`VHOST_TEXT_LEN_MAX`](crate::VHOST_TEXT_LEN_MAX), or a tag is no name.
    VhostInvalid,
    /// No more than [`VHOSTS_MAX`](crate::VHOSTS_MAX) virtual hosts.
    TooManyVhosts,
    /// The virtual host has as many queues as its `max_queues` allows.
    VhostQueuesMax,
    /// No policy of this kind has that name.
    NoSuchPolicy,
    /// A policy says something that cannot be, or that one of its kind cannot say ([`Policy::check`](crate::Policy::check)).
    PolicyInvalid,
    /// No more than [`POLICIES_MAX`](crate::POLICIES_MAX) policies.
    TooManyPolicies,
    /// A key or a value of metadata is out of bounds ([`METADATA_KEY_LEN_MAX`](crate::METADATA_KEY_LEN_MAX),
    /// [`METADATA_VALUE_LEN_MAX`](crate::METADATA_VALUE_LEN_MAX)), or all of one command do not fit one record of the store.
    MetadataInvalid,
    /// There would be more metadata than [`METADATA_BYTES_MAX`](crate::METADATA_BYTES_MAX).
    MetadataFull,
    /// The store has no room for more messages; acknowledgements are still taken.
    StoreFull,
    /// A queue is to be served by priority, messages wait in it that were published without one, and the request does not say which
    /// priority they get.
    ImportPriorityMissing {
        /// How many messages wait without a priority.
        count: u64,
    },
    /// A change of many messages selects another number of messages than its request expects.
    CountDiffers {
        /// How many messages it selects.
        count: u64,
    },
}

impl Refusal {
    /// A stable word for programs, the same on every wire and in every metric.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::NoSuchQueue => "no-such-queue",
            Self::NoSuchExchange => "no-such-exchange",
            Self::NoSuchBinding => "no-such-binding",
            Self::NoSuchMessage => "no-such-message",
            Self::NameInvalid => "name-invalid",
            Self::ExchangeDiffers(_) => "exchange-differs",
            Self::ExchangeReserved => "exchange-reserved",
            Self::ExchangeInternal => "exchange-internal",
            Self::ExchangeInUse => "exchange-in-use",
            Self::WeightInvalid => "weight-invalid",
            Self::ArgumentsInvalid => "arguments-invalid",
            Self::SettingFixed(_) => "setting-fixed",
            Self::HistoryCircular => "history-circular",
            Self::NotEmpty => "not-empty",
            Self::InUse => "in-use",
            Self::PriorityOutOfRange => "priority-out-of-range",
            Self::PriorityUnknown => "priority-unknown",
            Self::TooManyLanes => "too-many-lanes",
            Self::QueueFull => "queue-full",
            Self::BelowPriority => "below-priority",
            Self::MessageTooLarge => "message-too-large",
            Self::TooLargeAtOnce => "too-large-at-once",
            Self::IdInvalid => "id-invalid",
            Self::IdPending => "id-pending",
            Self::KeyInvalid => "key-invalid",
            Self::KeyWeightInvalid => "key-weight-invalid",
            Self::KeyWeightAlone => "key-weight-alone",
            Self::KeyMissing => "key-missing",
            Self::TooManyCopies => "too-many-copies",
            Self::Unroutable => "unroutable",
            Self::StaleReceipt => "stale-receipt",
            Self::CancelAsked => "cancel-asked",
            Self::ReportTooLarge => "report-too-large",
            Self::Leased => "leased",
            Self::Dead => "dead",
            Self::NotDead => "not-dead",
            Self::ConsumerKnown => "consumer-known",
            Self::NoSuchConsumer => "no-such-consumer",
            Self::QueueLocked => "queue-locked",
            Self::QueueDiffers => "queue-differs",
            Self::ConsumerExclusive => "consumer-exclusive",
            Self::TooManyConsumers => "too-many-consumers",
            Self::NoSuchOrphan => "no-such-orphan",
            Self::QueueExists => "queue-exists",
            Self::TooManyQueues => "too-many-queues",
            Self::NoSuchVhost => "no-such-vhost",
            Self::VhostReserved => "vhost-reserved",
            Self::VhostInvalid => "vhost-invalid",
            Self::TooManyVhosts => "too-many-vhosts",
            Self::VhostQueuesMax => "vhost-queues-max",
            Self::NoSuchPolicy => "no-such-policy",
            Self::PolicyInvalid => "policy-invalid",
            Self::TooManyPolicies => "too-many-policies",
            Self::MetadataInvalid => "metadata-invalid",
            Self::MetadataFull => "metadata-full",
            Self::StoreFull => "store-full",
            Self::CountDiffers { .. } => "count-differs",
            Self::ImportPriorityMissing { .. } => "import-priority-missing",
        }
    }

    /// One sentence that tells the client what to do.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::NoSuchQueue => "declare the queue first, or check its name",
            Self::NoSuchExchange => "declare the exchange first, or check its name",
            Self::NoSuchBinding => "list the exchange to see its bindings",
            Self::NoSuchMessage => "it was settled, has expired or was removed; there is nothing left to do",
            Self::NameInvalid => {
                "use 1 to 255 bytes of text without NUL for a queue or an exchange, else 1 to 200 bytes without control characters"
            }
            Self::ExchangeDiffers(_) => "declare it as it was declared, or delete it first",
            Self::ExchangeReserved => {
                "choose another name: the empty one, amq.* and overtake.* belong to the broker"
            }
            Self::ExchangeInternal => "publish to an exchange that it is bound to",
            Self::ExchangeInUse => {
                "take its bindings away first, or delete it without the condition if-unused"
            }
            Self::WeightInvalid => "bind with a whole number from 1 to 4294967295 as the routing key",
            Self::ArgumentsInvalid => "use shorter headers and arguments: 8192 bytes in all",
            Self::SettingFixed(_) => "empty the queue first, or leave this setting as it is",
            Self::HistoryCircular => {
                "name another queue as `history`, whose own `history` does not lead back to this one, or none"
            }
            Self::NotEmpty => {
                "consume or purge its messages first, or delete it without the condition if-empty"
            }
            Self::InUse => "stop its consumers first, or delete it without the condition if-unused",
            Self::PriorityOutOfRange => {
                "ten-level takes 0 and up, route 0 to 9, the others any integer; none takes one beyond 32 bits"
            }
            Self::PriorityUnknown => {
                "named takes critical, high, normal, low, background or 100, 50, 0, -50, -100; signed takes BULK, LOW, NORMAL, HIGH, CRITICAL or a number; the others take a number"
            }
            Self::TooManyLanes => {
                "use fewer different priorities at once, or group them with order = { lanes = [...] }"
            }
            Self::QueueFull => "try again when messages have been consumed, or raise max_length or max_bytes",
            Self::BelowPriority => "try again later, or publish it with a higher priority if it is urgent",
            Self::MessageTooLarge => {
                "store the body elsewhere and publish a reference, or raise max_message_bytes or max_bytes of the queue"
            }
            Self::TooLargeAtOnce => {
                "publish fewer messages at once, and large bodies as references; an embedded store takes more with larger store.segment_bytes"
            }
            Self::IdInvalid => "use 1 to 200 bytes without control characters that do not start with `seq-`",
            Self::IdPending => {
                "settle or remove the pending message of that id (in a last-value queue: of that key) first"
            }
            Self::KeyInvalid => "use at most 200 bytes of text without control characters",
            Self::KeyWeightInvalid => "give the key a weight of 1 to 1000, or none",
            Self::KeyWeightAlone => "give the message a key, or leave the weight out",
            Self::KeyMissing => "give the message a key: this queue keeps the newest message of each key",
            Self::TooManyCopies => {
                "publish fewer messages at once; where an exchange copies a message into many queues, bind fewer"
            }
            Self::Unroutable => "bind a queue to the exchange for this routing key",
            Self::StaleReceipt => {
                "drop the result: another consumer is given the message, or it has ended (settled, cancelled, removed, or its queue deleted)"
            }
            Self::CancelAsked => {
                "stop the work on the message and settle it, however it ended: the lease is not lengthened"
            }
            Self::ReportTooLarge => {
                "send only the end of the output: error and output have 32768 bytes together"
            }
            Self::Leased => "wait until its consumer has settled it, or remove it",
            Self::Dead => "replay it to put it back into its lane",
            Self::NotDead => "only dead letters, and what a history keeps, can be replayed",
            Self::ConsumerKnown => "use a new consumer id",
            Self::NoSuchConsumer => "the consumer is gone; start a new one",
            Self::QueueLocked => "use a queue of your own, or ask over the connection that declared it",
            Self::QueueDiffers => "declare it as it is, or delete it first",
            Self::ConsumerExclusive => {
                "wait until the other consumers are gone, or consume from another queue"
            }
            Self::TooManyConsumers => {
                "end consumers of this queue that are no longer used, or raise its max_consumers"
            }
            Self::NoSuchOrphan => "list those that there are with `overtake cluster orphans`",
            Self::QueueExists => "give another name, or delete that queue first",
            Self::TooManyQueues => "delete queues that are no longer used",
            Self::NoSuchVhost => "declare the virtual host first, or check its name",
            Self::VhostReserved => "delete its queues and exchanges instead; `/` itself stays",
            Self::VhostInvalid => {
                "use tags of 1 to 200 bytes, and 2048 bytes of tags and description in all, without control characters"
            }
            Self::TooManyVhosts => "delete virtual hosts that are no longer used",
            Self::VhostQueuesMax => {
                "delete queues of this virtual host that are no longer used, or raise its max_queues"
            }
            Self::NoSuchPolicy => {
                "list the policies to see their names; operator policies are listed by themselves"
            }
            Self::PolicyInvalid => "see docs/policies.md for the keys that a policy of this kind may have",
            Self::TooManyPolicies => {
                "remove policies that are no longer used: 1000 in all virtual hosts together"
            }
            Self::MetadataInvalid => {
                "use keys of 1 to 1024 bytes without control characters, values of at most 65536 bytes, and fewer of them at once"
            }
            Self::MetadataFull => "remove what is no longer needed: 16 MiB in all",
            Self::StoreFull => {
                "free disk space, or on Redis and Valkey raise maxmemory; consume and acknowledge to make room"
            }
            Self::ImportPriorityMissing { .. } => {
                "say which priority they get: `import_priority` with `most-urgent` or a priority, on the command line `--import-priority`"
            }
            Self::CountDiffers { .. } => "look at the messages again, and expect as many as are selected now",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = match self {
            Self::NoSuchQueue => "no such queue",
            Self::NoSuchExchange => "no such exchange",
            Self::NoSuchBinding => "no such binding",
            Self::NoSuchMessage => "no such message",
            Self::NameInvalid => "the name is empty, too long or holds characters that it may not",
            Self::ExchangeDiffers(key) => return write!(f, "the exchange exists with another `{key}`"),
            Self::ExchangeReserved => "the exchange belongs to the broker",
            Self::ExchangeInternal => "the exchange is internal",
            Self::ExchangeInUse => "the exchange has bindings",
            Self::WeightInvalid => "the routing key of the binding is no weight",
            Self::ArgumentsInvalid => "what is to be remembered is too long or too deep",
            Self::SettingFixed(key) => {
                return write!(f, "`{key}` cannot change while messages are in the queue");
            }
            Self::HistoryCircular => "the `history` of the queue is the queue itself, or leads back to it",
            Self::NotEmpty => "the queue is not empty",
            Self::InUse => "the queue has consumers",
            Self::PriorityOutOfRange => "the priority is out of range for the queue's scheme",
            Self::PriorityUnknown => "the priority is none the queue's scheme knows",
            Self::TooManyLanes => "the queue has messages of too many different priorities",
            Self::QueueFull => "the queue is full and this message is not the more urgent one",
            Self::BelowPriority => "the queue is deep and takes only more urgent messages now",
            Self::MessageTooLarge => "the message is too large",
            Self::TooLargeAtOnce => "this is too large to be stored at once",
            Self::IdInvalid => "the id cannot be used",
            Self::IdPending => "another message of that id or key is pending",
            Self::KeyInvalid => "the key is too long or holds control characters",
            Self::KeyWeightInvalid => "the weight of the key is not 1 to 1000",
            Self::KeyWeightAlone => "the message has a weight for its key, and no key",
            Self::KeyMissing => "the message has no key",
            Self::TooManyCopies => "there would be too many copies",
            Self::Unroutable => "no queue is bound for this message",
            Self::StaleReceipt => "the lease is over",
            Self::CancelAsked => "the message is to be given back",
            Self::ReportTooLarge => "the report is too large",
            Self::Leased => "the message is leased",
            Self::Dead => "the message is a dead letter",
            Self::NotDead => "the message is no dead letter",
            Self::ConsumerKnown => "the consumer id is in use",
            Self::NoSuchConsumer => "no such consumer",
            Self::QueueLocked => "the queue belongs to another session",
            Self::QueueDiffers => "the queue exists and is not as declared",
            Self::ConsumerExclusive => "the queue has an exclusive consumer, or others",
            Self::TooManyConsumers => "the queue has as many consumers as it may",
            Self::NoSuchOrphan => "no queue of this number has lost its definition",
            Self::QueueExists => "there is a queue of this name",
            Self::TooManyQueues => "there are too many queues",
            Self::NoSuchVhost => "no such virtual host",
            Self::VhostReserved => "the virtual host `/` is always there",
            Self::VhostInvalid => "what is said of the virtual host is too long or holds control characters",
            Self::TooManyVhosts => "there are too many virtual hosts",
            Self::VhostQueuesMax => "the virtual host has as many queues as it may",
            Self::NoSuchPolicy => "no such policy",
            Self::PolicyInvalid => "the policy says something that cannot be",
            Self::TooManyPolicies => "there are too many policies",
            Self::MetadataInvalid => {
                "the metadata has a key or value that cannot be used, or is too much at once"
            }
            Self::MetadataFull => "there is too much metadata",
            Self::StoreFull => "the store is full",
            Self::ImportPriorityMissing { count } => {
                return write!(
                    f,
                    "the queue is to be served by priority, and messages wait in it that were published without one ({count})"
                );
            }
            Self::CountDiffers { count } => {
                return write!(f, "{count} messages are selected, and another number was expected");
            }
        };
        f.write_str(sentence)
    }
}

impl std::error::Error for Refusal {}
