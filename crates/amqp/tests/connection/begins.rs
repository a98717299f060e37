//! Greeting, login, limits, virtual host.

use overtake_amqp::connection::{Ask, Credentials, NoVhost, Options};
use overtake_amqp::method::{access, channel, connection};
use overtake_amqp::{Method, PROTOCOL_HEADER};
use overtake_lane::Time;

use crate::peer::{Peer, text};

#[test]
fn a_client_logs_in_and_opens_a_channel() {
    let mut peer = Peer::new();
    peer.log_in(&[]);
    let hears = peer.hears();
    assert!(hears.len() == 1 && hears[0].starts_with("0 ConnectionStart"), "{hears:?}");
    let ann = Credentials::Password { user: "ann".into(), password: "secret".into() };
    assert_eq!(peer.asks(), [Ask::Login(ann)]);
    peer.connection.logged_in(true);
    assert_eq!(
        peer.hears(),
        ["0 ConnectionTune(Tune { channel_max: 2047, frame_max: 131072, heartbeat: 60 })"]
    );
    peer.say(0, connection::TuneOk { channel_max: 10, frame_max: 4_096, heartbeat: 0 });
    peer.say(0, connection::Open { virtual_host: text("/"), capabilities: text(""), insist: false });
    // What comes meanwhile waits.
    peer.say(1, channel::Open { out_of_band: text("") });
    assert_eq!((peer.asks(), peer.hears()), (vec![Ask::Open { vhost: "/".into() }], vec![]));
    peer.connection.opened(Ok(()));
    peer.bytes(b"");
    let hears = peer.hears();
    assert_eq!(hears[0], "0 ConnectionOpenOk(OpenOk { known_hosts: \"\" })");
    assert!(hears[1].starts_with("1 ChannelOpenOk"), "{hears:?}");
    peer.say(11, channel::Open { out_of_band: text("") });
    assert!(peer.hears()[0].contains("NOT_ALLOWED - channel 11"));
}

#[test]
fn the_bytes_may_dribble() {
    let mut stream = PROTOCOL_HEADER.to_vec();
    let start_ok = connection::StartOk {
        client_properties: overtake_properties::TableRef::default(),
        mechanism: text("AMQPLAIN"),
        response: b"\x05LOGINS\0\0\0\x03ann\x08PASSWORDS\0\0\0\x06secret",
        locale: text("en_US"),
    };
    overtake_amqp::FrameWriter::new(&mut stream, 4_096).method(0, start_ok);
    let mut peer = Peer::new();
    for byte in stream {
        peer.bytes(&[byte]);
    }
    assert!(matches!(&peer.asks()[..], [Ask::Login(_)]));
}

#[test]
fn whoever_speaks_otherwise_is_told_what_is_spoken_here() {
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"AMQP\x00\x01\x00\x00", b"X"] {
        let mut peer = Peer::new();
        peer.bytes(bytes);
        assert_eq!(peer.hears(), ["AMQP 0-9-1"]);
        assert!(peer.connection.is_over() && !peer.connection.wants_bytes());
    }
}

#[test]
fn a_wrong_login_ends_as_the_client_understands_it() {
    let mut peer = Peer::new();
    peer.log_in(&["authentication_failure_close"]);
    peer.hears();
    peer.connection.logged_in(false);
    let hears = peer.hears();
    assert!(
        hears[0].contains("reply_code: 403") && hears[0].contains("ACCESS_REFUSED - login refused (PLAIN)")
    );
    assert!(!peer.connection.is_over(), "the client agrees first");
    peer.say(0, connection::CloseOk {});
    assert!(peer.connection.is_over());

    let mut peer = Peer::new();
    peer.log_in(&["authentication_failure_close"]);
    peer.hears();
    peer.connection.not_logged_in("too many wait");
    let hears = peer.hears();
    assert!(hears[0].contains("reply_code: 506"), "{hears:?}");
    assert!(hears[0].contains("RESOURCE_ERROR - login not checked (PLAIN); too many wait"), "{hears:?}");

    let mut peer = Peer::new();
    peer.log_in(&[]);
    peer.hears();
    peer.connection.logged_in(false);
    assert_eq!((peer.hears(), peer.connection.is_over()), (vec![], true));
}

#[test]
fn limits_beyond_ours_are_refused() {
    for (channel_max, frame_max) in [(3_000, 0), (0, 200_000), (0, 4_095)] {
        let mut peer = Peer::new();
        peer.log_in(&[]);
        peer.connection.logged_in(true);
        peer.hears();
        peer.say(0, connection::TuneOk { channel_max, frame_max, heartbeat: 0 });
        assert!(peer.hears()[0].contains("NOT_ALLOWED - negotiated"), "{channel_max} {frame_max}");
    }
}

#[test]
fn a_virtual_host_that_is_not_there_is_said_so() {
    let mut peer = Peer::new();
    peer.log_in(&[]);
    peer.connection.logged_in(true);
    peer.say(0, connection::TuneOk { channel_max: 0, frame_max: 0, heartbeat: 0 });
    peer.say(0, connection::Open { virtual_host: text("no"), capabilities: text(""), insist: false });
    peer.hears();
    peer.connection.opened(Err(NoVhost::Unknown));
    assert!(peer.hears()[0].contains("reply_code: 530, reply_text: \"NOT_ALLOWED - vhost 'no' not found\""));
}

#[test]
fn whoever_does_not_log_in_is_let_go() {
    let mut peer = Peer::new();
    let deadline = peer.connection.next_deadline().expect("it is not waited for without end");
    peer.connection.tick(Time(deadline.0 - 1));
    assert!(!peer.connection.is_over());
    peer.connection.tick(deadline);
    assert!(peer.connection.is_over());
}

#[test]
fn nothing_long_is_taken_before_the_login() {
    let mut peer = Peer::with(Options::default());
    peer.bytes(&PROTOCOL_HEADER);
    peer.hears();
    peer.bytes(b"\x01\x00\x00\x00\x01\x00\x00");
    assert!(peer.hears()[0].contains("FRAME_ERROR"));
}

#[test]
fn methods_at_the_wrong_time_are_refused() {
    let mut peer = Peer::new();
    peer.bytes(&PROTOCOL_HEADER);
    peer.hears();
    peer.say(1, channel::Open { out_of_band: text("") });
    assert!(peer.hears()[0].contains("CHANNEL_ERROR"));
    let wrong: [(u16, Method<'_>, &str); 3] = [
        (0, channel::Open { out_of_band: text("") }.into(), "COMMAND_INVALID"),
        (1, channel::Open { out_of_band: text("") }.into(), "CHANNEL_ERROR - second 'channel.open' seen"),
        (2, channel::Flow { active: true }.into(), "CHANNEL_ERROR - expected 'channel.open'"),
    ];
    for (number, method, text) in wrong {
        let mut peer = Peer::open();
        peer.say(number, method);
        let hears = peer.hears();
        assert!(hears[0].starts_with("0 ConnectionClose") && hears[0].contains(text), "{hears:?}");
    }
}

#[test]
fn methods_that_change_nothing_are_answered() {
    let mut peer = Peer::open();
    peer.say(1, channel::Flow { active: true });
    peer.say(0, connection::UpdateSecret { new_secret: b"secret", reason: text("expired") });
    let realm = access::Request {
        realm: text("/data"),
        exclusive: false,
        passive: true,
        active: true,
        write: true,
        read: true,
    };
    peer.say(1, realm);
    assert_eq!(
        peer.hears(),
        [
            "1 ChannelFlowOk(FlowOk { active: true })",
            "0 ConnectionUpdateSecretOk(UpdateSecretOk)",
            "1 AccessRequestOk(RequestOk { ticket: 1 })",
        ]
    );
}
