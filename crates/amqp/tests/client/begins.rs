//! Greeting, login, limits, virtual host: how it should go, and every way it does not.

use overtake_amqp::client::{Client, ClientOptions, Credentials, Unsent};
use overtake_amqp::method::connection;
use overtake_amqp::{Method, PROTOCOL_HEADER};
use overtake_lane::Time;
use overtake_properties::TableRef;

use crate::server::{Peer, options, start, text};

const TUNE: connection::Tune = connection::Tune { channel_max: 10, frame_max: 4_096, heartbeat: 20 };

/// A client that is told these, one after the other.
fn told(methods: &[Method<'_>]) -> Peer {
    let mut peer = Peer::new();
    methods.iter().for_each(|method| peer.say(0, *method));
    peer
}

#[test]
fn a_client_logs_in_and_is_open() {
    let mut peer = Peer::new();
    assert_eq!(*peer.client.output(), PROTOCOL_HEADER);
    assert_eq!(peer.client.open_channel(), Err(Unsent::NotOpen));
    peer.say(0, start(b"AMQPLAIN PLAIN"));
    let hears = peer.hears();
    assert!(hears[0].contains("mechanism: \"PLAIN\"") && hears[0].contains("connection_name"), "{hears:?}");
    assert!(hears[0].contains("authentication_failure_close"), "{hears:?}");
    peer.say(0, TUNE);
    let open = "0 ConnectionOpen(Open { virtual_host: \"/\", capabilities: \"\", insist: false })";
    assert_eq!(
        peer.hears(),
        ["0 ConnectionTuneOk(TuneOk { channel_max: 10, frame_max: 4096, heartbeat: 20 })", open]
    );
    assert!(!peer.client.is_open());
    peer.say(0, connection::OpenOk { known_hosts: text("") });
    assert_eq!(peer.events(), ["open 10 4096 20"]);
    assert!(peer.client.is_open());
}

#[test]
fn a_certificate_logs_in_too_and_is_asked_once_more() {
    let mut peer = Peer::with(ClientOptions { credentials: Credentials::Certificate, ..options() });
    peer.say(0, start(b"EXTERNAL"));
    assert!(peer.hears()[0].contains("mechanism: \"EXTERNAL\", response: []"));
    peer.say(0, connection::Secure { challenge: b"who?" });
    assert_eq!(peer.hears(), ["0 ConnectionSecureOk(SecureOk { response: [] })"]);
    peer.say(0, TUNE);
    assert_eq!(peer.hears().len(), 2);
}

#[test]
fn the_lower_limit_holds_and_none_is_no_limit() {
    let check = |ours: (u16, u32, u16), theirs: (u16, u32, u16), agreed: &str| {
        let (channel_max, frame_max, heartbeat_s) = ours;
        let mut peer = Peer::with(ClientOptions { channel_max, frame_max, heartbeat_s, ..options() });
        peer.say(0, start(b"PLAIN"));
        let (channel_max, frame_max, heartbeat) = theirs;
        peer.say(0, connection::Tune { channel_max, frame_max, heartbeat });
        peer.say(0, connection::OpenOk { known_hosts: text("") });
        assert_eq!(peer.events(), [agreed]);
    };
    check((100, 8_192, 60), (50, 131_072, 10), "open 50 8192 10");
    check((0, 131_072, 0), (2_047, 0, 60), "open 2047 131072 0");
    check((0, 0, 60), (0, 0, 0), "open 65535 4096 0");
}

#[test]
fn whoever_speaks_otherwise_is_recognised() {
    let check = |bytes: &[u8], says: &str| {
        for pieces in [1, bytes.len()] {
            let mut peer = Peer::new();
            bytes.chunks(pieces).for_each(|piece| peer.bytes(piece));
            let events = peer.events();
            assert!(events.len() == 1 && events[0].contains(says), "{events:?}");
            assert!(peer.client.is_over());
        }
    };
    check(b"AMQP\x00\x01\x00\x00", r"it was sent AMQP\x00\x00\t\x01 and answered AMQP\x00\x01\x00\x00");
    check(b"AMQP\x01\x01\x00\x0a", "another version");
    check(b"HTTP/1.1 400 Bad Request\r\n", "does not speak AMQP");
    check(b"\x15\x03\x01\x00\x02", "it may expect TLS");
    let mut peer = told(&[connection::Start { version_minor: 8, ..start(b"PLAIN") }.into()]);
    assert!(peer.events()[0].contains("another version"));
}

#[test]
fn a_mechanism_that_is_not_offered_is_not_tried() {
    let mut peer = told(&[start(b"EXTERNAL PLAINER").into()]);
    assert_eq!(
        peer.events(),
        ["closed: the server lets nobody log in like this, only with: EXTERNAL PLAINER"]
    );
    assert_eq!(peer.hears(), [""; 0], "the password is not shown");
}

#[test]
fn a_refused_login_is_told_as_such() {
    let reply_text = text("ACCESS_REFUSED - Login was refused");
    let close = connection::Close { reply_code: 403, reply_text, class_id: 0, method_id: 0 };
    let mut peer = told(&[start(b"PLAIN").into(), close.into()]);
    assert_eq!(peer.events(), ["closed: the server refused the login: ACCESS_REFUSED - Login was refused"]);
    assert_eq!(peer.hears().last().map(String::as_str), Some("0 ConnectionCloseOk(CloseOk)"));
}

#[test]
fn a_server_that_hangs_up_says_why_by_when_it_does() {
    let check = |methods: &[Method<'_>], says: &str| {
        let mut peer = told(methods);
        peer.client.hung_up();
        peer.client.hung_up();
        let closed = peer.events().pop().expect("it is told");
        assert!(closed.starts_with("closed: ") && closed.contains(says), "{closed}");
        assert!(peer.client.is_over() && peer.client.next_deadline().is_none());
    };
    check(&[], "before it said anything");
    let mut script: Vec<Method<'_>> = vec![start(b"PLAIN").into()];
    check(&script, "after the login and did not say why");
    script.push(TUNE.into());
    check(&script, "when the virtual host was asked for and did not say why");
    script.push(connection::OpenOk { known_hosts: text("") }.into());
    check(&script, "the server hung up");
}

#[test]
fn a_virtual_host_that_is_not_there_is_told_by_the_server() {
    let close = connection::Close {
        reply_code: 530,
        reply_text: text("NOT_ALLOWED - vhost 'no' not found"),
        class_id: 10,
        method_id: 40,
    };
    let mut peer = told(&[start(b"PLAIN").into(), TUNE.into(), close.into()]);
    assert_eq!(
        peer.events(),
        ["closed: the server closed the connection: 530 NOT_ALLOWED - vhost 'no' not found"]
    );
}

#[test]
fn methods_at_the_wrong_time_end_it() {
    let ok = connection::OpenOk { known_hosts: text("") };
    let scripts: [&[Method<'_>]; 4] = [
        &[TUNE.into()],
        &[start(b"PLAIN").into(), start(b"PLAIN").into()],
        &[start(b"PLAIN").into(), ok.into()],
        &[start(b"PLAIN").into(), connection::Open::default().into()],
    ];
    for script in scripts {
        let mut peer = told(script);
        let (events, hears) = (peer.events(), peer.hears());
        assert!(events[0].contains("503 COMMAND_INVALID"), "{events:?}");
        assert!(hears.last().is_some_and(|last| last.contains("reply_code: 503")), "{hears:?}");
        assert!(!peer.client.is_over(), "the server agrees first");
        peer.say(0, connection::CloseOk {});
        assert!(peer.client.is_over() && peer.events().is_empty());
    }
}

#[test]
fn limits_that_nobody_can_keep_are_refused() {
    let low = connection::Tune { frame_max: 4_095, ..TUNE };
    assert!(told(&[start(b"PLAIN").into(), low.into()]).events()[0].contains("530 NOT_ALLOWED - frame_max"));
    let mut peer = Peer::with(ClientOptions { vhost: "v".repeat(256), ..options() });
    peer.say(0, start(b"PLAIN"));
    peer.say(0, TUNE);
    assert!(peer.events()[0].contains("no vhost has a name of more than 255 bytes"));
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let mut client = Client::new(Time(0), ClientOptions { patience_ms: 500, ..options() });
    assert_eq!(client.next_deadline(), Some(Time(500)));
    client.tick(Time(499));
    assert!(!client.is_over());
    client.tick(Time(500));
    assert!(client.is_over());
    let events = client.take_events();
    assert_eq!(crate::server::line(&events[0]), "closed: the server did not open the connection in time");
}

#[test]
fn what_the_server_says_of_itself_is_handed_on() {
    let table = TableRef::check(b"\x07productS\0\0\0\x06Rabbit", &overtake_properties::Limits::default());
    let server_properties = table.expect("a table");
    let ok = connection::OpenOk { known_hosts: text("") };
    let start = connection::Start { server_properties, ..start(b"PLAIN") };
    let mut peer = told(&[start.into(), TUNE.into(), ok.into()]);
    let events = peer.client.take_events();
    let overtake_amqp::client::Event::Opened(terms) = &events[0] else { panic!("{events:?}") };
    assert_eq!(terms.server_properties.get("product").and_then(|value| value.text()), Some("Rabbit"));
}

#[test]
fn signs_of_life_are_given_while_the_virtual_host_is_looked_for() {
    let mut peer = told(&[start(b"PLAIN").into(), TUNE.into()]);
    peer.hears();
    assert_eq!(peer.client.next_deadline(), Some(Time(peer.now.0 + 10_000)));
    peer.client.tick(Time(peer.now.0 + 10_000));
    assert_eq!(peer.hears(), ["0 heartbeat"]);
    peer.client.tick(Time(peer.now.0 + 30_000));
    assert_eq!(peer.events(), ["closed: the server did not open the connection in time"]);
}

#[test]
fn a_password_is_not_shown() {
    let peer = told(&[start(b"PLAIN").into()]);
    let shown = format!("{:?}", peer.client);
    assert!(shown.contains("ann") && !shown.contains("secret") && !shown.contains("115, 101, 99"), "{shown}");
}
