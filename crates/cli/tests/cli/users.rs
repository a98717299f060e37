//! Users, rights and tokens, as an administrator and the programs see them.

use std::net::TcpStream;

use overtake_amqp::method::{channel, queue};
use overtake_properties::{ShortText, TableRef};
use serde_json::Value;
use tempfile::TempDir;

use crate::support;
use crate::support::amqp::{Client, text};
use crate::support::{Broker, overtake};

fn broker(flags: &[&str]) -> (TempDir, Broker) {
    let dir = TempDir::new().expect("a directory");
    let broker = Broker::start_with(&dir.path().join("data"), flags);
    (dir, broker)
}

/// `broker.run`, as somebody else.
fn run_as(broker: &Broker, (name, password): (&str, &str), words: &[&str]) -> support::Run {
    let mut command = broker.command(words);
    command.env("OVERTAKE_USER", name).env("OVERTAKE_PASSWORD", password);
    support::Run::of(command.output().expect("it runs"))
}

fn amqp(broker: &Broker) -> TcpStream {
    let stream = TcpStream::connect(&broker.amqp).expect("it accepts");
    stream.set_read_timeout(Some(support::PATIENCE)).expect("a socket");
    stream
}

#[test]
fn a_user_does_what_the_rights_say_and_no_more() {
    let (_dir, broker) = broker(&["--queue", "jobs", "--queue", "other"]);
    let made = broker.feed(&["user", "put", "worker", "--new-password"], b"secret\n").ok();
    assert_eq!(made, "user worker is made; give rights with `overtake user allow worker`\n");
    let worker = ("worker", "secret");
    let denied = run_as(&broker, worker, &["queue", "list"]);
    assert_eq!(denied.code, 77, "{denied:?}");
    assert!(
        denied.stderr.contains("access to vhost '/' refused for user 'worker' (403 access-refused)"),
        "{denied:?}"
    );
    broker.run(&["user", "allow", "worker", "--read", "^jobs$"]).ok();
    broker.run(&["publish", "jobs", "one"]).ok();
    assert!(run_as(&broker, worker, &["consume", "jobs", "--count", "1"]).ok().contains("one"));
    assert_eq!(run_as(&broker, worker, &["publish", "jobs", "two"]).code, 77);
    assert_eq!(run_as(&broker, worker, &["purge", "other", "--yes"]).code, 77);
    assert_eq!(run_as(&broker, ("worker", "wrong"), &["whoami"]).code, 77);
    assert_eq!(run_as(&broker, worker, &["whoami"]).ok(), "worker\n");
    assert_eq!(broker.run(&["whoami"]).ok(), "guest (administrator)\n");
    let listed = broker.run(&["user", "list"]).ok();
    assert!(listed.contains("worker"), "{listed}");
    broker.run(&["user", "deny", "worker"]).ok();
    assert_eq!(run_as(&broker, worker, &["peek", "jobs"]).code, 77);
    broker.run(&["user", "delete", "worker", "--yes"]).ok();
    assert_eq!(run_as(&broker, worker, &["whoami"]).code, 77);
    let last = broker.run(&["user", "delete", "guest", "--yes"]);
    assert!(last.stderr.contains("409 last-administrator"), "{last:?}");
}

#[test]
fn a_token_stands_for_its_user_until_it_is_revoked() {
    let (dir, broker) = broker(&["--queue", "jobs"]);
    let token =
        broker.run(&["token", "make", "--label", "ci", "--read", "^jobs$", "--expires-in", "1h"]).ok();
    assert!(token.starts_with("ovt_") && token.len() == 48, "{token}");
    let file = dir.path().join("token");
    std::fs::write(&file, &token).expect("written");
    let by_token = |words: &[&str]| {
        let mut command = broker.command(words);
        command.env("OVERTAKE_TOKEN_FILE", &file);
        support::Run::of(command.output().expect("it runs"))
    };
    by_token(&["queue", "show", "jobs"]).ok();
    assert_eq!(by_token(&["user", "list"]).code, 77, "it has no tags");
    let listed = broker.run(&["token", "list", "--json"]).json();
    let id = listed["tokens"][0]["id"].as_str().expect("a number").to_owned();
    assert_eq!(listed["tokens"][0]["label"], "ci");
    assert!(by_token(&["whoami"]).ok().starts_with(&format!("guest, by token {id}")));
    broker.run(&["token", "revoke", &id]).ok();
    assert_eq!(by_token(&["queue", "show", "jobs"]).code, 77);
}

#[test]
fn who_is_deleted_is_disconnected_and_who_has_too_much_is_told() {
    let (_dir, broker) = broker(&[]);
    broker
        .feed(
            &["user", "put", "ann", "--new-password", "--max-connections", "1", "--max-channels", "2"],
            b"secret\n",
        )
        .ok();
    broker.run(&["user", "allow", "ann", "--all"]).ok();
    let mut ann = Client::open(amqp(&broker), "PLAIN", b"\0ann\0secret");
    let second = Client::turned_away(amqp(&broker), "PLAIN", b"\0ann\0secret");
    assert!(second.contains("user connection limit (1) is reached"), "{second}");
    ann.say(1, channel::Open { out_of_band: text("") });
    assert!(ann.hear().starts_with("ChannelOpenOk"));
    broker.run(&["user", "delete", "ann", "--yes"]).ok();
    let closed = ann.hear();
    assert!(closed.contains("user 'ann' is deleted"), "{closed}");

    broker.feed(&["user", "put", "bob", "--new-password", "--max-channels", "1"], b"secret\n").ok();
    broker.run(&["user", "allow", "bob", "--all"]).ok();
    let mut bob = Client::open(amqp(&broker), "PLAIN", b"\0bob\0secret");
    bob.say(1, channel::Open { out_of_band: text("") });
    assert!(bob.hear().starts_with("ChannelOpenOk"));
    bob.say(2, channel::Open { out_of_band: text("") });
    let told = [bob.hear(), bob.hear()].join(" ");
    assert!(told.contains("the maximum allowed user limit of (1)"), "{told}");
}

#[test]
fn lower_limits_and_another_password_end_nothing_that_is_open_and_permissions_that_are_gone_do() {
    let (_dir, broker) = broker(&[]);
    let password = ["user", "put", "ann", "--new-password"];
    broker.feed(&password, b"secret\n").ok();
    broker.run(&["user", "allow", "ann", "--all"]).ok();
    let mut ann = Client::open(amqp(&broker), "PLAIN", b"\0ann\0secret");
    let open = |ann: &mut Client<TcpStream>, number| {
        ann.say(number, channel::Open { out_of_band: text("") });
        ann.hear()
    };
    assert!(open(&mut ann, 1).starts_with("ChannelOpenOk"));
    broker.feed(&password, b"another\n").ok();
    broker.run(&["user", "put", "ann", "--max-connections", "0"]).ok();
    broker.run(&["vhost", "put", "/", "--max-connections", "1"]).ok();
    assert!(open(&mut ann, 2).starts_with("ChannelOpenOk"));
    let second = Client::turned_away(amqp(&broker), "PLAIN", b"\0guest\0guest");
    assert!(
        second.contains("access to vhost '/' refused for user 'guest': connection limit (1)"),
        "{second}"
    );
    broker.run(&["vhost", "put", "/", "--max-connections", "2"]).ok();
    let third = Client::turned_away(amqp(&broker), "PLAIN", b"\0ann\0another");
    assert!(third.contains("user connection limit (0) is reached"), "{third}");

    broker.run(&["user", "put", "ann", "--max-channels", "1"]).ok();
    let told = [open(&mut ann, 3), ann.hear()].join(" ");
    assert!(told.contains("the maximum allowed user limit of (1)"), "{told}");
    broker.run(&["user", "put", "ann", "--max-connections", "9", "--max-channels", "9"]).ok();
    let mut ann = Client::open(amqp(&broker), "PLAIN", b"\0ann\0another");
    broker.run(&["user", "deny", "ann"]).ok();
    let told = ann.hear();
    assert!(told.contains("reply_code: 320"), "{told}");
    assert!(told.contains("access to vhost '/' refused for user 'ann'"), "{told}");
}

#[test]
fn over_amqp_what_is_not_allowed_costs_the_channel() {
    let (_dir, broker) = broker(&[]);
    broker.feed(&["user", "put", "ann", "--new-password"], b"secret\n").ok();
    broker.run(&["user", "allow", "ann", "--configure", "^own"]).ok();
    let mut ann = Client::open(amqp(&broker), "PLAIN", b"\0ann\0secret");
    ann.say(1, channel::Open { out_of_band: text("") });
    assert!(ann.hear().starts_with("ChannelOpenOk"));
    let declare = |name| queue::Declare {
        ticket: 0,
        queue: name,
        passive: false,
        durable: true,
        exclusive: false,
        auto_delete: false,
        no_wait: false,
        arguments: TableRef::default(),
    };
    ann.say(1, declare(ShortText::literal("own")));
    assert!(ann.hear().starts_with("QueueDeclareOk"));
    ann.say(1, declare(ShortText::literal("other")));
    let closed = ann.hear();
    let expect = "ACCESS_REFUSED - configure access to queue 'other' in vhost '/' refused for user 'ann'";
    assert!(closed.contains(expect), "{closed}");
}

#[test]
fn beyond_this_machine_nobody_is_served_until_there_is_an_administrator() {
    let dir = TempDir::new().expect("a directory");
    let data = dir.path().join("data");
    let data = data.to_str().expect("text");
    let flags = ["serve", "--data-dir", data, "--http", "0.0.0.0:0", "--amqp", "127.0.0.1:0"];
    let refused = support::run(&flags, b"");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused.stderr.contains("the only administrator, guest, comes from this one only"),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("--admin-user"), "{refused:?}");

    let file = dir.path().join("password");
    std::fs::write(&file, "s3cret\n").expect("written");
    let file = file.to_str().expect("text");
    let half = support::run(&["config", "check", "--admin-user", "root"], b"");
    assert!(half.stderr.contains("access.admin_password_file is not set"), "{half:?}");
    let named = ["--http", "0.0.0.0:0", "--admin-user", "root", "--admin-password-file", file];
    let broker = Broker::start_as(overtake(), data.as_ref(), &named);
    assert_eq!(run_as(&broker, ("root", "s3cret"), &["whoami"]).ok(), "root (administrator)\n");
    broker.stop();
    // From now on she is there by herself.
    let broker = Broker::start_as(overtake(), data.as_ref(), &["--http", "0.0.0.0:0"]);
    assert_eq!(run_as(&broker, ("root", "s3cret"), &["whoami"]).ok(), "root (administrator)\n");
}

#[test]
fn what_administrators_do_is_a_line_of_json_each() {
    let dir = TempDir::new().expect("a directory");
    let file = dir.path().join("audit.jsonl");
    let flags = ["--audit-file", file.to_str().expect("text")];
    let broker = Broker::start_with(&dir.path().join("data"), &flags);
    broker.feed(&["user", "put", "ann", "--new-password"], b"hunter2\n").ok();
    broker.run(&["queue", "declare", "q"]).ok();
    broker.run(&["purge", "q", "--yes"]).ok();
    let written = std::fs::read_to_string(&file).expect("it is there");
    let deeds: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told: Vec<_> =
        deeds.iter().map(|deed| (deed["user"].as_str(), deed["action"].as_str().expect("text"))).collect();
    let guest = Some("guest");
    let expect = [
        (None, "user.put"),
        (None, "permission.set"),
        (guest, "user.put"),
        (guest, "queue.declare"),
        (guest, "queue.purge"),
    ];
    // Guest is made before the file is opened.
    assert_eq!(told, expect[expect.len() - told.len()..]);
    assert!(!written.contains("hunter2"), "{written}");
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(&file).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let shown = broker.run(&["audit"]).ok();
    assert!(shown.contains("queue.purge"), "{shown}");
}

#[test]
fn an_administrator_has_a_password_and_a_tag_that_means_something() {
    let (_dir, broker) = broker(&[]);
    let without = broker.run(&["user", "put", "ann", "--tag", "administrator"]);
    assert_eq!(without.code, 1, "{without:?}");
    assert!(without.stderr.contains("`ann` would be an administrator without a password"), "{without:?}");
    assert!(without.stderr.contains("--new-password"), "{without:?}");
    let misspelt = broker.feed(&["user", "put", "ann", "--new-password", "--tag", "admin"], b"secret\n");
    assert!(misspelt.stderr.contains("did you mean `administrator`?"), "{misspelt:?}");
    assert!(!broker.run(&["user", "list"]).ok().contains("ann"));
    broker.feed(&["user", "put", "ann", "--new-password", "--tag", "administrator"], b"secret\n").ok();
    broker.run(&["user", "put", "cert", "--no-password", "--tag", "administrator"]).ok();
    assert_eq!(run_as(&broker, ("ann", "secret"), &["whoami"]).ok(), "ann (administrator)\n");
}

#[test]
fn rights_are_those_in_the_virtual_host_that_was_said() {
    let (_dir, broker) = broker(&[]);
    broker.run(&["vhost", "put", "shop"]).ok();
    for (words, vhost) in [
        (&["--vhost", "shop", "user", "allow", "ann", "--all"][..], "shop"),
        (&["user", "allow", "ann", "--in", "shop", "--all"], "shop"),
        (&["--vhost", "shop", "user", "allow", "ann", "--in", "/", "--all"], "/"),
        (&["user", "allow", "ann", "--all"], "/"),
    ] {
        broker.run(&["user", "put", "ann", "--no-password"]).ok();
        broker.run(words).ok();
        let rights = || broker.run(&["user", "show", "ann", "--json"]).json()["permissions"].clone();
        assert_eq!(
            (rights().as_array().map(Vec::len), &rights()[0]["vhost"]),
            (Some(1), &Value::from(vhost)),
            "{words:?}"
        );
        let deny: Vec<_> = words.iter().filter(|word| **word != "--all").collect();
        let deny: Vec<_> = deny.iter().map(|word| if **word == "allow" { "deny" } else { **word }).collect();
        broker.run(&deny).ok();
        assert_eq!(rights().as_array().map(Vec::len), Some(0), "{deny:?}");
    }
}
