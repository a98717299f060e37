//! AMQP on its ports, as clients find them: plain, under TLS, and what is no AMQP at all.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use overtake_amqp::PROTOCOL_HEADER;
use overtake_amqp::method::{basic, channel, queue};
use overtake_properties::TableRef;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::support;
use crate::support::Broker;
use crate::support::amqp::{Client, text};
use crate::support::tls::{Authority, connect, secure, write};

fn broker(flags: &[&str]) -> (TempDir, Broker) {
    let dir = TempDir::new().expect("a directory");
    let broker = Broker::start_with(&dir.path().join("data"), flags);
    (dir, broker)
}

fn declare(name: &'static str) -> queue::Declare<'static> {
    queue::Declare {
        ticket: 0,
        queue: text(name),
        passive: false,
        durable: true,
        exclusive: false,
        auto_delete: false,
        no_wait: false,
        arguments: TableRef::EMPTY,
    }
}

#[test]
fn what_is_no_amqp_is_told_what_is() {
    let (_dir, broker) = broker(&[]);
    for said in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"AMQP\x00\x01\x00\x00", b"\x16\x03\x01\x02\x00"] {
        let mut stream = connect(&broker.amqp);
        stream.write_all(said).expect("it reads");
        let mut answer = Vec::new();
        // It may end the connection with more of what was said unread.
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(answer, PROTOCOL_HEADER, "{said:?}");
    }
}

#[test]
fn a_guest_with_another_password_is_not_let_in() {
    let (_dir, broker) = broker(&[]);
    for (mechanism, response) in [("PLAIN", &b"\0guest\0secret"[..]), ("PLAIN", b"\0root\0guest")] {
        let mut client = Client::greet(connect(&broker.amqp));
        client.hear();
        client.log_in(mechanism, response);
        assert_eq!(client.hear(), "the end", "a client that does not know the close is cut off");
    }
}

#[test]
fn a_queue_is_the_same_for_amqp_and_the_command_line() {
    let (_dir, broker) = broker(&[]);
    let mut client = Client::open(connect(&broker.amqp), "PLAIN", b"\0guest\0guest");
    client.say(1, channel::Open { out_of_band: text("") });
    client.hear();
    client.say(1, declare("jobs"));
    assert!(client.hear().contains("message_count: 0, consumer_count: 0"));
    broker.run(&["publish", "jobs", "hello"]).ok();
    client.say(1, queue::Declare { passive: true, ..declare("jobs") });
    assert!(client.hear().contains("message_count: 1, consumer_count: 0"));
}

#[test]
fn a_broker_that_is_stopped_says_so() {
    let (_dir, broker) = broker(&[]);
    let mut client = Client::open(connect(&broker.amqp), "PLAIN", b"\0guest\0guest");
    broker.signal(rustix::process::Signal::TERM);
    let close = client.hear();
    // A broker drains before it stops; a client with nothing in hand hears of either.
    let is_said =
        ["the broker is being drained", "the broker is being stopped"].iter().any(|why| close.contains(why));
    assert!(close.contains("reply_code: 320") && is_said, "{close}");
    client.say(0, overtake_amqp::method::connection::CloseOk {});
    assert_eq!(client.hear(), "the end");
    drop(client);
    assert!(broker.end().0.success(), "it waited for the client");
}

#[test]
fn a_drain_lets_everybody_finish_and_go() {
    for by_signal in [false, true] {
        let (_dir, mut broker) = broker(&[]);
        broker.run(&["queue", "declare", "q"]).ok();
        broker.run(&["publish", "q", "a"]).ok();
        let mut client = Client::open(connect(&broker.amqp), "PLAIN", b"\0guest\0guest");
        client.say(1, channel::Open { out_of_band: text("") });
        assert!(client.hear().starts_with("ChannelOpenOk"));
        client.say(1, basic::Get { ticket: 0, queue: text("q"), no_ack: false });
        assert!(client.hear().starts_with("BasicGetOk"));

        let drain =
            (!by_signal).then(|| broker.command(&["drain"]).stdout(Stdio::piped()).spawn().expect("it runs"));
        if by_signal {
            broker.signal(Signal::USR2);
        }
        broker.await_line("draining: no more messages are given out");
        let health = broker.run(&["health"]);
        assert!(health.code == 69 && health.stderr.contains("the server is draining"), "{health:?}");
        assert!(broker.run(&["consume", "q"]).stderr.contains("is being drained"));
        assert!(broker.run(&["publish", "q", "b"]).code == 0, "what is published is still taken");

        client.say(1, basic::Ack { delivery_tag: 1, multiple: false });
        let told = client.hear();
        assert!(
            told.starts_with("ConnectionClose") && told.contains("the broker is being drained"),
            "{told}"
        );
        client.say(0, overtake_amqp::method::connection::CloseOk {});
        assert_eq!(client.hear(), "the end");
        drop(client);
        broker.await_line("drained: nothing is leased");
        assert!(TcpStream::connect(&broker.amqp).is_err(), "nobody listens there any more");
        if let Some(drain) = drain {
            let output = drain.wait_with_output().expect("it ends");
            assert!(output.status.success(), "{output:?}");
        }
        assert_eq!(broker.run(&["drain", "--json"]).ok(), "{\"drained\":true,\"unacknowledged\":0}\n");
        broker.stop();
    }
}

#[test]
fn a_drain_ends_when_its_time_is_over() {
    let (_dir, broker) = broker(&[]);
    broker.run(&["queue", "declare", "q"]).ok();
    broker.run(&["publish", "q", "a"]).ok();
    let mut client = Client::open(connect(&broker.amqp), "PLAIN", b"\0guest\0guest");
    client.say(1, channel::Open { out_of_band: text("") });
    client.hear();
    client.say(1, basic::Get { ticket: 0, queue: text("q"), no_ack: false });
    client.hear();
    let drain =
        broker.command(&["drain", "--within", "50ms"]).stderr(Stdio::piped()).spawn().expect("it runs");
    let told = client.hear();
    assert!(told.starts_with("ConnectionClose") && told.contains("the broker is being stopped"), "{told}");
    client.say(0, overtake_amqp::method::connection::CloseOk {});
    let output = drain.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(75) && said.contains("1 message was still leased"), "{said}");
    assert!(broker.run(&["peek", "q"]).ok().contains('a'), "it is put back");
    broker.stop();
}

#[test]
fn amqp_need_not_be_served() {
    let (_dir, broker) = broker(&["--amqp", "off"]);
    assert_eq!(broker.amqp, "");
}

#[test]
fn under_tls_a_certificate_says_who_somebody_is() {
    let authority = Authority::new("ours");
    let files = TempDir::new().expect("a directory");
    let [cert, key] = authority.sign_into(files.path(), "broker");
    let ca = write(files.path(), "ca.pem", &authority.pem());
    let flags = ["--amqps", "127.0.0.1:0", "--tls-cert", &cert, "--tls-key", &key, "--tls-client-ca", &ca];
    let (_dir, broker) = broker(&flags);

    let ann = authority.sign("ann");
    let unknown = Client::refused(secure(&broker.amqps, &authority, Some(&ann)), "EXTERNAL", b"");
    assert!(unknown.contains("ACCESS_REFUSED - login refused (EXTERNAL)"), "she is no user yet: {unknown}");
    broker.run(&["user", "put", "ann", "--no-password"]).ok();
    broker.run(&["user", "allow", "ann", "--all"]).ok();
    let mut client = Client::open(secure(&broker.amqps, &authority, Some(&ann)), "EXTERNAL", b"");
    client.say(1, channel::Open { out_of_band: text("") });
    assert!(client.hear().starts_with("ChannelOpenOk"));

    let mut nobody = Client::greet(secure(&broker.amqps, &authority, None));
    let start = nobody.hear();
    assert!(!start.contains("EXTERNAL"), "without a certificate it is not offered: {start}");
    let guest = Client::open(secure(&broker.amqps, &authority, None), "PLAIN", b"\0guest\0guest");
    drop(guest);

    let stranger = Authority::new("theirs").sign("ann");
    let mut stranger = secure(&broker.amqps, &authority, Some(&stranger));
    let refused = stranger.write_all(&PROTOCOL_HEADER).and_then(|()| stranger.read_exact(&mut [0]));
    assert!(refused.is_err(), "nobody knows who signed that");

    let mut plain = connect(&broker.amqps);
    plain.write_all(&PROTOCOL_HEADER).expect("it reads");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"AMQP"), "what is not TLS is not answered in AMQP");
}

#[test]
fn a_certificate_is_read_again_and_nobody_is_cut_off() {
    let (before, after) = (Authority::new("before"), Authority::new("after"));
    let files = TempDir::new().expect("a directory");
    let [cert, key] = before.sign_into(files.path(), "broker");
    let (_dir, mut broker) = broker(&["--amqps", "127.0.0.1:0", "--tls-cert", &cert, "--tls-key", &key]);
    let guest = |broker: &Broker, authority: &Authority| {
        Client::open(secure(&broker.amqps, authority, None), "PLAIN", b"\0guest\0guest")
    };
    let mut old = guest(&broker, &before);

    after.sign_into(files.path(), "broker");
    broker.signal(Signal::HUP);
    broker.await_line("the certificate is read again");
    let mut new = guest(&broker, &after);
    for client in [&mut old, &mut new] {
        client.say(1, channel::Open { out_of_band: text("") });
        assert!(client.hear().starts_with("ChannelOpenOk"));
    }

    write(files.path(), "cert.pem", "no certificate");
    broker.signal(Signal::HUP);
    broker.await_line("connections to come are shown the certificate of before");
    guest(&broker, &after);
}

#[test]
fn http_is_served_under_tls() {
    let authority = Authority::new("ours");
    let files = TempDir::new().expect("a directory");
    let [cert, key] = authority.sign_into(files.path(), "broker");
    let ca = write(files.path(), "ca.pem", &authority.pem());
    let (_dir, broker) = broker(&["--https", "127.0.0.1:0", "--tls-cert", &cert, "--tls-key", &key]);
    let url = broker.https.replace("127.0.0.1", "localhost");

    let run = support::run(&["--url", &url, "--ca-file", &ca, "health"], b"");
    assert!(run.code == 0, "{run:?}");
    let theirs = write(files.path(), "theirs.pem", &Authority::new("theirs").pem());
    let run = support::run(&["--url", &url, "--ca-file", &theirs, "health"], b"");
    assert!(run.code == 69 && run.stderr.contains("is signed by no CA that is trusted here"), "{run:?}");
    assert!(run.stderr.contains("name who signed that with --ca-file"), "{run:?}");
    let run = support::run(&["--url", &broker.url.replace("http", "https"), "--ca-file", &ca, "health"], b"");
    assert!(run.code == 69 && run.stderr.contains("use the port that is served under TLS"), "{run:?}");
    let run = support::run(&["--url", &url, "--ca-file", &key, "health"], b"");
    assert!(run.code != 0 && run.stderr.contains("there is no certificate in it"), "{run:?}");
    let mut foreign = secure(broker.https.trim_start_matches("https://"), &authority, None);
    write!(foreign, "GET /livez HTTP/1.1\r\nhost: broker.example\r\nconnection: close\r\n\r\n")
        .expect("it reads");
    let mut answer = [0; 12];
    foreign.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 421", "everything listens on this machine only");
    // Plain HTTP is still there, and not on that port.
    assert!(broker.run(&["health"]).code == 0);
    let run = support::run(&["--url", &broker.https.replace("https", "http"), "health"], b"");
    assert!(run.code != 0, "{run:?}");
}

#[test]
fn over_http_too_a_certificate_says_who_somebody_is() {
    let authority = Authority::new("ours");
    let files = TempDir::new().expect("a directory");
    let [cert, key] = authority.sign_into(files.path(), "broker");
    let ca = write(files.path(), "ca.pem", &authority.pem());
    let flags = ["--https", "127.0.0.1:0", "--tls-cert", &cert, "--tls-key", &key, "--tls-client-ca", &ca];
    let (_dir, broker) = broker(&flags);
    let address = broker.https.trim_start_matches("https://").trim_end_matches('/');
    let ann = authority.sign("ann");
    let ask = |path: &str, certificate, header: &str| {
        let mut stream = secure(address, &authority, certificate);
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{header}\r\n")
            .expect("it reads");
        let mut answer = String::new();
        // The other side may end without saying goodbye to TLS.
        let _ = stream.read_to_string(&mut answer);
        answer
    };

    let unknown = ask("/v1/whoami", Some(&ann), "");
    assert!(unknown.contains("login-refused"), "she is no user yet: {unknown}");
    broker.run(&["user", "put", "ann", "--no-password", "--tag", "management"]).ok();
    for path in ["/v1/whoami", "/api/whoami"] {
        let answer = ask(path, Some(&ann), "");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"ann\""), "{answer}");
        let answer = ask(path, Some(&ann), "authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n");
        assert!(answer.contains("\"guest\""), "what the request itself says goes before: {answer}");
        let answer = ask(path, Some(&ann), "authorization: Basic eDp5\r\n");
        assert!(answer.starts_with("HTTP/1.1 401"), "and is not made good by a certificate: {answer}");
        assert!(ask(path, None, "").starts_with("HTTP/1.1 401"));
    }
}

#[test]
fn who_listens_to_others_under_tls_answers_to_its_name() {
    let authority = Authority::new("ours");
    let files = TempDir::new().expect("a directory");
    let [cert, key] = authority.sign_into(files.path(), "broker");
    let password = write(files.path(), "password", "a good password");
    let (_dir, broker) = broker(&[
        "--https",
        "0.0.0.0:0",
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
        "--admin-user",
        "root",
        "--admin-password-file",
        &password,
        "--http-hosts",
        "broker.example",
    ]);
    let address = broker.https.trim_start_matches("https://").replace("0.0.0.0", "127.0.0.1");
    for (host, status) in [("broker.example", b"HTTP/1.1 200"), ("rebound.example", b"HTTP/1.1 421")] {
        let mut stream = secure(&address, &authority, None);
        write!(stream, "GET /livez HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").expect("it reads");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, status, "{host}");
    }
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let files = TempDir::new().expect("a directory");
    let cert = write(files.path(), "cert.pem", "no certificate");
    let data = files.path().join("data");
    let data = data.to_str().expect("text");
    let words = [
        "serve",
        "--http",
        "127.0.0.1:0",
        "--amqp",
        "off",
        "--amqps",
        "127.0.0.1:0",
        "--tls-cert",
        &cert,
        "--tls-key",
        &cert,
        "--data-dir",
        data,
    ];
    let served = support::run(&words, b"");
    assert!(
        served.code != 0 && served.stderr.contains("cert.pem") && served.stderr.contains("PEM files"),
        "{served:?}"
    );
    let run = support::run(&["config", "check", "--amqps", "127.0.0.1:0"], b"");
    assert!(run.code != 0 && run.stderr.contains("tls.cert_file is not set"), "{run:?}");
    let checked = support::run(&[&["config", "check"], &words[1..]].concat(), b"");
    assert_eq!((checked.code, &checked.stderr), (served.code, &served.stderr), "one check for both");
}
