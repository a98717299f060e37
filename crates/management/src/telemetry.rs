//! Who is connected over AMQP, in numbers: together for everybody, and each by itself for who asks for that.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_amqp::connection::{ChannelView, ConnectionState, ConsumerView};
use overtake_telemetry::{Collected, Family, Kind, Labels, Point, Source, Value, labels};

use crate::connections::{Connected, Connections};

/// Something that is counted of a connection, a channel or a consumer.
struct Number<T> {
    family: Family,
    number: fn(&T) -> u64,
}

const fn number<T>(
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    help: &'static str,
    number: fn(&T) -> u64,
) -> Number<T> {
    Number { family: Family::new(name, kind, unit, help), number }
}

const fn all(name: &'static str, help: &'static str, of: fn(&Connected) -> u64) -> Number<Connected> {
    number(name, Kind::UpDownCounter, "", help, of)
}

fn channels(one: &Connected) -> u64 {
    one.looks.view.channels.len() as u64
}

fn consumers(one: &Connected) -> u64 {
    one.looks.view.channels.iter().map(|channel| channel.consumers.len() as u64).sum()
}

fn unacknowledged(one: &Connected) -> u64 {
    one.looks.view.channels.iter().map(|channel| channel.unacked as u64).sum()
}

fn unconfirmed(one: &Connected) -> u64 {
    one.looks.view.channels.iter().map(of_channel_unconfirmed).sum()
}

fn of_channel_unconfirmed(channel: &ChannelView) -> u64 {
    if channel.confirms { channel.unconfirmed.into() } else { 0 }
}

fn blocked(one: &Connected) -> u64 {
    u64::from(one.looks.view.state == ConnectionState::Blocked)
}

/// By protocol and user.
static TOGETHER: [Number<Connected>; 6] = [
    all("overtake.connections", "Connections open.", |_| 1),
    all("overtake.channels", "Channels open.", channels),
    all("overtake.consumers", "Consumers over AMQP.", consumers),
    all("overtake.unacknowledged_messages", "Messages sent and not settled.", unacknowledged),
    all("overtake.unconfirmed_messages", "Messages taken and not confirmed yet.", unconfirmed),
    all(
        "overtake.blocked_connections",
        "Connections that publish and are not read, since the store is full.",
        blocked,
    ),
];

static OF_CONNECTIONS: [Number<Connected>; 4] = [
    number("overtake.connection.received", Kind::Counter, "By", "Bytes read from the client.", |one| {
        one.looks.received
    }),
    number("overtake.connection.sent", Kind::Counter, "By", "Bytes written to the client.", |one| {
        one.looks.sent
    }),
    number("overtake.connection.channels", Kind::UpDownCounter, "", "Channels open.", channels),
    number(
        "overtake.connection.blocked",
        Kind::Gauge,
        "",
        "Whether it has published and publishes are refused, or it is not read.",
        blocked,
    ),
];

static OF_CHANNELS: [Number<ChannelView>; 5] = [
    number(
        "overtake.channel.window_messages",
        Kind::Gauge,
        "",
        "Most messages that its consumers to come hold, each or together; 0: no limit.",
        |channel| channel.prefetch.into(),
    ),
    number(
        "overtake.channel.unacknowledged_messages",
        Kind::UpDownCounter,
        "",
        "Messages sent and not settled.",
        |channel| channel.unacked as u64,
    ),
    number(
        "overtake.channel.unconfirmed_messages",
        Kind::UpDownCounter,
        "",
        "Messages taken and not confirmed yet.",
        of_channel_unconfirmed,
    ),
    number("overtake.channel.delivered", Kind::Counter, "", "Messages sent.", |channel| {
        channel.counts.sent()
    }),
    number("overtake.channel.acknowledged", Kind::Counter, "", "Messages acknowledged.", |channel| {
        channel.counts.acked
    }),
];

static OF_CONSUMERS: [Number<ConsumerView>; 3] = [
    number(
        "overtake.consumer.window_messages",
        Kind::Gauge,
        "",
        "Most messages it holds at once; 0: no limit of its own.",
        |consumer| consumer.consume.prefetch.into(),
    ),
    number(
        "overtake.consumer.unacknowledged_messages",
        Kind::UpDownCounter,
        "",
        "Messages sent and not settled.",
        |consumer| consumer.unacked as u64,
    ),
    number("overtake.consumer.delivered", Kind::Counter, "", "Messages sent.", |consumer| consumer.delivered),
];

impl Source for Connections {
    fn collect(&self) -> Collected<'_> {
        Box::pin(async {
            let (opened, closed) = self.churn();
            let counter = |name, help| Family::new(name, Kind::Counter, "{connection}", help);
            let mut families = together(&self.look().await);
            families.push(counter("overtake.connections.opened", "Connections over AMQP opened.").of(opened));
            families.push(counter("overtake.connections.closed", "Connections over AMQP closed.").of(closed));
            families
        })
    }
}

/// Sums by protocol and user: as many series as there are users, however many are connected.
fn together(connected: &[Connected]) -> Vec<Family> {
    let mut by: BTreeMap<(&str, &str), [u64; TOGETHER.len()]> = BTreeMap::new();
    for one in connected {
        let protocol = if one.caller.is_secure { "amqps" } else { "amqp" };
        let sums = by.entry((protocol, &one.looks.user)).or_default();
        sums.iter_mut().zip(&TOGETHER).for_each(|(sum, each)| *sum += (each.number)(one));
    }
    let mut families = TOGETHER.each_ref().map(|each| each.family.clone());
    for ((protocol, user), sums) in by {
        let of = labels([("protocol", protocol), ("user", user)]);
        for (family, sum) in families.iter_mut().zip(sums) {
            let labels = Arc::clone(&of);
            family.points.push(Point { labels, value: Value::Whole(sum) });
        }
    }
    families.into()
}

/// Every connection, channel and consumer by itself.
pub(crate) fn each(connected: &[Connected]) -> Vec<Family> {
    let mut of_connections = OF_CONNECTIONS.each_ref().map(|each| each.family.clone());
    let mut of_channels = OF_CHANNELS.each_ref().map(|each| each.family.clone());
    let mut of_consumers = OF_CONSUMERS.each_ref().map(|each| each.family.clone());
    for one in connected {
        let (name, view) = (one.caller.name(), &one.looks.view);
        let connection = [("connection", name.as_str()), ("user", &one.looks.user), ("vhost", &view.vhost)];
        grow(&mut of_connections, &OF_CONNECTIONS, &labels(connection), one);
        for channel in &view.channels {
            let number = channel.number.to_string();
            let [connection, user, vhost] = connection;
            let of = [connection, ("channel", number.as_str()), user, vhost];
            grow(&mut of_channels, &OF_CHANNELS, &labels(of), channel);
            for consumer in &channel.consumers {
                let [connection, channel, user, vhost] = of;
                let which = [("consumer", consumer.tag.as_str()), ("queue", &consumer.consume.queue)];
                let of = labels([connection, channel, which[0], user, vhost, which[1]]);
                grow(&mut of_consumers, &OF_CONSUMERS, &of, consumer);
            }
        }
    }
    of_connections.into_iter().chain(of_channels).chain(of_consumers).collect()
}

fn grow<T>(families: &mut [Family], table: &[Number<T>], labels: &Labels, of: &T) {
    for (family, each) in families.iter_mut().zip(table) {
        let value = Value::Whole((each.number)(of));
        family.points.push(Point { labels: Arc::clone(labels), value });
    }
}

#[cfg(test)]
mod tests {
    use overtake_amqp::connection::{ChannelCounts, Connection, Consume, Options};
    use overtake_lane::{ConsumerId, Time};
    use overtake_properties::Table;
    use overtake_telemetry::text;

    use super::*;
    use crate::connections::{Caller, Looks};

    fn consumer() -> ConsumerView {
        let consume = Consume {
            queue: "q".to_owned(),
            tag: "c".to_owned(),
            prefetch: 7,
            shared: None,
            no_ack: false,
            exclusive: false,
            priority: 0,
            arguments: Table::default(),
        };
        ConsumerView { id: ConsumerId(1), tag: "c".to_owned(), consume, unacked: 2, delivered: 3 }
    }

    /// Somebody with a channel, which was sent three messages and settled one.
    fn connected(user: &str, port: u16, is_secure: bool) -> Connected {
        let mut view = Connection::new(Time(0), Options::default()).view();
        view.state = ConnectionState::Blocked;
        view.vhost = "/".to_owned();
        view.channels = vec![ChannelView {
            number: 1,
            confirms: true,
            transactional: false,
            prefetch: 10,
            shares_prefetch: false,
            unacked: 2,
            counts: ChannelCounts { delivered: 3, acked: 1, ..ChannelCounts::default() },
            active_at: Time(0),
            unconfirmed: 4,
            uncommitted: 0,
            uncommitted_acks: 0,
            is_closing: false,
            consumers: vec![consumer()],
        }];
        let address = |port| ([127, 0, 0, 1], port).into();
        let caller = Caller { peer: address(port), local: address(5_672), is_secure, connected_at: Time(0) };
        let looks = Looks { user: user.to_owned(), view, received: 100, sent: 200 };
        Connected { number: u64::from(port), caller: caller.into(), looks }
    }

    #[track_caller]
    fn check(families: &[Family], expect: &[&str]) {
        let text = text::render(families);
        for line in expect {
            assert!(text.lines().any(|there| there == *line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn sums_are_by_protocol_and_user() {
        let all = [connected("ann", 1, false), connected("ann", 2, false), connected("bob", 3, true)];
        check(
            &together(&all),
            &[
                r#"overtake_connections{protocol="amqp",user="ann"} 2"#,
                r#"overtake_connections{protocol="amqps",user="bob"} 1"#,
                r#"overtake_channels{protocol="amqp",user="ann"} 2"#,
                r#"overtake_unacknowledged_messages{protocol="amqp",user="ann"} 4"#,
                r#"overtake_unconfirmed_messages{protocol="amqps",user="bob"} 4"#,
                r#"overtake_blocked_connections{protocol="amqp",user="ann"} 2"#,
            ],
        );
    }

    #[test]
    fn each_connection_channel_and_consumer_has_its_own_series() {
        let of = r#"connection="127.0.0.1:7 -> 127.0.0.1:5672""#;
        let of_consumer = format!(r#"{of},channel="1",consumer="c",user="ann",vhost="/",queue="q""#);
        let expect = [
            format!(r#"overtake_connection_received_bytes_total{{{of},user="ann",vhost="/"}} 100"#),
            format!(r#"overtake_connection_blocked{{{of},user="ann",vhost="/"}} 1"#),
            format!(r#"overtake_channel_window_messages{{{of},channel="1",user="ann",vhost="/"}} 10"#),
            format!(r#"overtake_channel_delivered_total{{{of},channel="1",user="ann",vhost="/"}} 3"#),
            format!(r#"overtake_channel_acknowledged_total{{{of},channel="1",user="ann",vhost="/"}} 1"#),
            format!(r#"overtake_consumer_window_messages{{{of_consumer}}} 7"#),
            format!(r#"overtake_consumer_unacknowledged_messages{{{of_consumer}}} 2"#),
            format!(r#"overtake_consumer_delivered_total{{{of_consumer}}} 3"#),
        ];
        check(&each(&[connected("ann", 7, false)]), &expect.each_ref().map(String::as_str));
    }
}
