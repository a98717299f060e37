//! Coming in at the gate of a real engine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use overtake_access::{
    Account, Change, Denied, Desks, GUEST, Gate, Hashing, Identity, LoginRefused, NotChanged, PasswordHash,
    Permission, Right, Scope, Tag, Unchangeable,
};
use overtake_engine::rights::{Named, Need};
use overtake_engine::{Engine, LocalEngine, Options, RouteSet, SystemClock};
use overtake_lane::{PolicyKind, Time, VhostSettings};
use overtake_routes::Manifest;
use overtake_store::MemoryDisk;
use tokio::time::Instant;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));
const NOON: Time = Time(1_000_000);

fn engine(disk: &MemoryDisk) -> Arc<LocalEngine> {
    let small = Options { segment_bytes: 1 << 16, ..Options::default() };
    Arc::new(LocalEngine::open_on(disk.clone(), small, Arc::new(SystemClock)).expect("a store"))
}

async fn gate() -> Gate {
    over(engine(&MemoryDisk::new(1))).await
}

async fn over(engine: Arc<LocalEngine>) -> Gate {
    Gate::open(engine as Arc<dyn Engine>, || NOON).await.expect("it opens")
}

async fn make(gate: &Gate, name: &str, password: &str, tags: &str) {
    let password = Some(gate.hashed(password.into()).await.expect("a password"));
    let account = Account { password, tags: tags.split_whitespace().collect(), ..Account::default() };
    gate.change(None, vec![Change::PutUser { name: name.into(), account }]).await.expect("made");
}

async fn allow(gate: &Gate, user: &str, vhost: &str, [configure, write, read]: [&str; 3]) {
    let permission = Permission::new(configure, write, read).expect("patterns");
    let set = Change::SetPermission { user: user.into(), vhost: vhost.into(), permission };
    gate.change(None, vec![set]).await.expect("set");
}

fn may(who: &Identity, right: Right, name: &str) -> bool {
    who.must("/", Need { right, to: Named::Queue(name) }).is_ok()
}

#[tokio::test]
async fn where_nobody_was_made_there_is_guest_who_comes_from_here_only() {
    let gate = gate().await;
    let guest = gate.log_in(GUEST, GUEST, HERE).await.expect("guest is welcome");
    assert!(guest.must_have(Tag::Administrator).is_ok());
    assert!(may(&guest, Right::Configure, "anything"));
    for here in [IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped())] {
        gate.log_in(GUEST, GUEST, here).await.expect("this is here, too");
    }
    assert_eq!(gate.log_in(GUEST, GUEST, ELSEWHERE).await.err(), Some(LoginRefused::Wrong));
    assert!(!gate.has_administrator_from_elsewhere());
    make(&gate, "ann", "secret", "administrator").await;
    assert!(gate.has_administrator_from_elsewhere());
    gate.log_in("ann", "secret", ELSEWHERE).await.expect("ann is welcome");
}

#[tokio::test]
async fn who_was_made_is_there_after_a_restart_and_guest_is_not_made_again() {
    let disk = MemoryDisk::new(1);
    {
        let engine = engine(&disk);
        let gate = over(Arc::clone(&engine)).await;
        let delete = || vec![Change::DeleteUser { name: GUEST.into() }];
        let last = NotChanged::Unchangeable(Unchangeable::LastAdministrator);
        assert_eq!(gate.change(None, delete()).await, Err(last));
        make(&gate, "ann", "secret", "administrator").await;
        allow(&gate, "ann", "/", ["", "^out$", ""]).await;
        gate.change(None, delete()).await.expect("deleted");
        engine.close();
    }
    let gate = over(engine(&disk)).await;
    let ann = gate.log_in("ann", "secret", ELSEWHERE).await.expect("ann is welcome");
    assert!(may(&ann, Right::Write, "out") && !may(&ann, Right::Read, "out"));
    assert_eq!(gate.log_in(GUEST, GUEST, HERE).await.err(), Some(LoginRefused::Wrong));
}

#[tokio::test]
async fn rights_that_change_count_at_once() {
    let gate = gate().await;
    make(&gate, "ann", "secret", "").await;
    let ann = gate.log_in("ann", "secret", HERE).await.expect("ann is welcome");
    let version = ann.version();
    let vhost = Denied::Vhost { user: "ann".into(), vhost: "/".into() };
    let read = Need { right: Right::Read, to: Named::Queue("q") };
    assert_eq!(ann.must("/", read), Err(vhost));
    allow(&gate, "ann", "/", ["", "", "^q$"]).await;
    assert!(may(&ann, Right::Read, "q") && !may(&ann, Right::Read, "r"));
    assert_ne!(ann.version(), version);
    gate.change(None, vec![Change::DeleteUser { name: "ann".into() }]).await.expect("deleted");
    assert!(!may(&ann, Right::Read, "q") && !ann.is_there(NOON));
    assert_eq!(
        gate.log_in("ann", "secret", HERE).await.err(),
        Some(LoginRefused::Wrong),
        "what was known is forgotten"
    );
}

#[tokio::test]
async fn whoever_is_in_a_virtual_host_knows_that_it_is_deleted_also_when_another_has_its_name() {
    let engine = engine(&MemoryDisk::new(1));
    let gate = Arc::new(over(Arc::clone(&engine)).await);
    let guest = gate.log_in(GUEST, GUEST, HERE).await.expect("guest is welcome");
    let office = Desks::new(engine, Arc::clone(&gate)).office(guest.clone()).expect("an administrator");
    let begun = guest.version();
    office.put_vhost("shop", VhostSettings::default()).await.expect("made");
    let entered = guest.version();
    assert!(!guest.is_vhost_deleted("shop", entered));
    office.delete_vhost("shop").await.expect("deleted");
    assert!(guest.must_enter("shop").is_err());
    office.put_vhost("shop", VhostSettings::default()).await.expect("made");
    assert!(guest.must_enter("shop").is_ok());
    for before in [begun, entered] {
        assert!(guest.is_vhost_deleted("shop", before) && !guest.is_vhost_deleted("/", before));
    }
    assert!(!guest.is_vhost_deleted("shop", guest.version()), "who enters now is in the new one");
}

#[tokio::test(start_paused = true)]
async fn failures_slow_down_who_fails_and_nobody_else() {
    let gate = gate().await;
    make(&gate, "ann", "secret", "").await;
    make(&gate, "bob", "secret", "").await;
    let timed = async |user: &str, password: &str, from| {
        let began = Instant::now();
        let is_right = gate.log_in(user, password, from).await.is_ok();
        (is_right, began.elapsed().as_millis())
    };
    let mut waits = Vec::new();
    for _ in 0..10 {
        waits.push(timed("ann", "wrong", HERE).await);
    }
    let expect = [0, 0, 0, 250, 500, 1_000, 2_000, 4_000, 8_000, 8_000].map(|ms| (false, ms));
    assert_eq!(waits, expect);
    assert_eq!(timed("bob", "secret", HERE).await, (true, 0));
    assert_eq!(timed("ann", "secret", ELSEWHERE).await, (true, 0));
    assert_eq!(timed("ann", "secret", HERE).await, (true, 0), "what is known to be right costs nothing");
    tokio::time::advance(Duration::from_secs(601)).await;
    assert_eq!(timed("ann", "wrong", HERE).await, (false, 0), "failures are forgiven");
}

#[tokio::test(start_paused = true)]
async fn many_attempts_at_once_are_no_faster() {
    let gate = Arc::new(gate().await);
    let began = Instant::now();
    let attempts: Vec<_> = (0..6)
        .map(|at| {
            let gate = Arc::clone(&gate);
            tokio::spawn(async move { gate.log_in("nobody", &at.to_string(), HERE).await.is_ok() })
        })
        .collect();
    for attempt in attempts {
        assert!(!attempt.await.expect("it ends"));
    }
    assert_eq!(began.elapsed().as_millis(), 250 + 500 + 1_000);
}

#[tokio::test]
async fn a_token_does_what_its_user_may_within_its_scope() {
    let gate = gate().await;
    make(&gate, "ann", "secret", "administrator").await;
    allow(&gate, "ann", "/", [".*", "^(in|out)$", ".*"]).await;
    let ann = gate.log_in("ann", "secret", HERE).await.expect("ann is welcome");
    let narrow = Permission::new("", ".*", "^in$").expect("patterns");
    let scope = Scope { permission: Some(narrow), ..Scope::default() };
    let (id, secret) = gate.make_token(&ann, "ann", "worker", scope, None).await.expect("made");
    let worker = gate.log_in_by_token(secret.reveal(), ELSEWHERE).expect("the token is good");
    assert_eq!((&**worker.user(), worker.token()), ("ann", Some(&id)));
    let seen = ["in", "out", "x"].map(|name| {
        [Right::Configure, Right::Write, Right::Read].map(|right| u8::from(may(&worker, right, name)))
    });
    assert_eq!(seen, [[0, 1, 1], [0, 1, 0], [0, 0, 0]]);
    assert!(worker.must_have(Tag::Management).is_err(), "no tags unless it says so");

    gate.change(Some(&ann), vec![Change::DeleteToken { id }]).await.expect("revoked");
    assert!(!may(&worker, Right::Read, "in") && !worker.is_there(NOON));
    assert_eq!(gate.log_in_by_token(secret.reveal(), HERE).err(), Some(LoginRefused::Wrong));
}

#[tokio::test]
async fn a_token_ends_when_it_says_and_only_in_its_virtual_host() {
    let gate = gate().await;
    let guest = gate.log_in(GUEST, GUEST, HERE).await.expect("guest is welcome");
    let over = gate.make_token(&guest, GUEST, "", Scope::default(), Some(NOON)).await.expect("made").1;
    assert_eq!(gate.log_in_by_token(over.reveal(), HERE).err(), Some(LoginRefused::Wrong));
    let scope =
        Scope { vhost: Some("other".into()), tags: ["monitoring"].into_iter().collect(), ..Scope::default() };
    let other = gate.make_token(&guest, GUEST, "", scope, None).await.expect("made").1;
    assert_eq!(
        gate.log_in_by_token(other.reveal(), ELSEWHERE).err(),
        Some(LoginRefused::Wrong),
        "guest's come from here, too"
    );
    let other = gate.log_in_by_token(other.reveal(), HERE).expect("the token is good");
    assert!(other.must_enter("/").is_err());
    assert!(other.must_have(Tag::Monitoring).is_ok(), "an administrator may monitor");
    assert!(other.must_have(Tag::Administrator).is_err(), "the token names no more");
    make(&gate, "ann", "secret", "management").await;
    let wide = ["monitoring", "management"].into_iter().collect();
    let wide = Scope { tags: wide, ..Scope::default() };
    let of_ann = gate.make_token(&guest, "ann", "", wide, None).await.expect("made").1;
    let of_ann = gate.log_in_by_token(of_ann.reveal(), HERE).expect("the token is good");
    assert_eq!(of_ann.tags(), ["management"], "what the user has not the token has not");
}

#[tokio::test]
async fn a_certificate_names_somebody_who_is_there() {
    let gate = gate().await;
    make(&gate, "sensor", "x", "").await;
    assert!(gate.log_in_by_certificate("sensor", ELSEWHERE).is_ok());
    assert_eq!(gate.log_in_by_certificate("other", ELSEWHERE).err(), Some(LoginRefused::Wrong));
}

#[tokio::test]
async fn guest_comes_from_this_machine_only_whatever_it_shows() {
    let gate = gate().await;
    let guest = gate.log_in(GUEST, GUEST, HERE).await.expect("guest is welcome");
    let token = gate.make_token(&guest, GUEST, "", Scope::default(), None).await.expect("made").1;
    let session = gate.begin_web_session(&guest);
    let ways = async |from| {
        [
            gate.log_in(GUEST, GUEST, from).await.is_ok(),
            gate.log_in_by_token(token.reveal(), from).is_ok(),
            gate.log_in_by_certificate(GUEST, from).is_ok(),
            gate.log_in_by_web_session(session.reveal(), from).is_ok(),
        ]
    };
    assert_eq!(ways(ELSEWHERE).await, [false; 4]);
    assert_eq!(ways(IpAddr::V6(Ipv4Addr::new(10, 0, 0, 7).to_ipv6_mapped())).await, [false; 4]);
    assert_eq!(ways(HERE).await, [true; 4]);
}

#[tokio::test]
async fn a_policy_that_leads_messages_elsewhere_takes_what_a_declaration_takes() {
    let engine = engine(&MemoryDisk::new(1));
    let gate = Arc::new(over(Arc::clone(&engine)).await);
    make(&gate, "ann", "secret", "policymaker").await;
    allow(&gate, "ann", "/", ["", "^mine", "^mine"]).await;
    make(&gate, "root", "secret", "administrator").await;
    allow(&gate, "root", "/", ["", "", ""]).await;
    let desks = Desks::new(engine, Arc::clone(&gate));
    let set = async |user: &str, pattern: &str, apply_to: &str, definition: serde_json::Value| {
        let who = gate.log_in(user, "secret", HERE).await.expect("welcome");
        let policy = serde_json::json!({"pattern": pattern, "apply-to": apply_to, "definition": definition});
        let policy = serde_json::from_value(policy).expect("a policy");
        let set = desks.desk(who, "/").await.expect("a desk").set_policy(PolicyKind::User, "p", policy).await;
        set.map_err(|not| not.to_string())
    };
    let dlx = |to: &str| serde_json::json!({"dead-letter-exchange": to});
    let all = "a policy with dead-letter-exchange takes the right to read everything that its pattern matches: the pattern for \
               reading of user 'ann' in vhost '/' does not cover '.*'; set the policy for names that the user may read, or let an \
               administrator set it";
    assert_eq!(set("ann", ".*", "queues", dlx("mine.dead")).await, Err(all.to_owned()));
    let write = "write access to exchange 'theirs' in vhost '/' refused for user 'ann'";
    assert_eq!(set("ann", "^mine", "queues", dlx("theirs")).await, Err(write.to_owned()));
    let key = serde_json::json!({"dead-letter-routing-key": "mine"});
    assert!(set("ann", ".*", "all", key).await.expect_err("denied").contains("dead-letter-routing-key"));
    let alternate = serde_json::json!({"alternate-exchange": "mine.rest"});
    assert!(set("ann", ".*", "all", alternate).await.expect_err("denied").contains("alternate-exchange"));

    assert_eq!(set("ann", "^mine", "queues", dlx("mine.dead")).await, Ok(()));
    assert_eq!(set("ann", ".*", "queues", serde_json::json!({"max-length": 5})).await, Ok(()));
    assert_eq!(set("root", ".*", "queues", dlx("theirs")).await, Ok(()));
}

#[tokio::test]
async fn a_route_takes_what_a_binding_takes() {
    let engine = engine(&MemoryDisk::new(1));
    let gate = Arc::new(over(Arc::clone(&engine)).await);
    make(&gate, "ann", "secret", "policymaker").await;
    make(&gate, "root", "secret", "administrator").await;
    allow(&gate, "root", "/", ["", "", ""]).await;
    let desks = Desks::new(engine, Arc::clone(&gate));
    let set = async |user: &str, sinks: &[&str]| {
        let who = gate.log_in(user, "secret", HERE).await.expect("welcome");
        let routes: serde_json::Map<_, _> =
            sinks.iter().map(|sink| (sink.replace('"', ""), format!("FROM /* INTO {sink}").into())).collect();
        let manifest = serde_json::json!({ "routes": routes }).to_string();
        let routes = RouteSet::new(Manifest::from_json(&manifest).expect("a manifest"));
        let set = desks.desk(who, "/").await.expect("a desk").set_routes(routes).await;
        set.map_err(|not| not.to_string())
    };
    let denied = |what: &str| Err(format!("{what} in vhost '/' refused for user 'ann'"));
    let (mine, theirs) = ("Queue(\"mine\")", "Queue(\"theirs\")");
    allow(&gate, "ann", "/", ["", "^mine", ""]).await;
    assert_eq!(set("ann", &[mine]).await, denied("read access to exchange 'overtake.routes'"));
    allow(&gate, "ann", "/", ["", "^mine", "^overtake.routes$"]).await;
    assert_eq!(set("ann", &[mine, theirs]).await, denied("write access to queue 'theirs'"));
    assert_eq!(set("ann", &[mine]).await, Ok(()));
    assert_eq!(set("root", &[mine, theirs]).await, Ok(()));
    allow(&gate, "ann", "/", ["", "", ""]).await;
    assert_eq!(set("ann", &[theirs]).await, Ok(()), "what is there stays, and what goes takes nothing");
}

#[tokio::test]
async fn a_hash_of_rabbitmq_lets_its_user_in() {
    let gate = gate().await;
    let hash = PasswordHash::imported(Hashing::Sha256, "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR");
    let account = Account { password: Some(hash.expect("a hash")), ..Account::default() };
    gate.change(None, vec![Change::PutUser { name: "moved".into(), account }]).await.expect("made");
    assert!(gate.log_in("moved", "test12", ELSEWHERE).await.is_ok());
    assert!(gate.log_in("moved", "test13", ELSEWHERE).await.is_err());
}

#[tokio::test]
async fn what_is_changed_is_written_down_without_its_secrets() {
    let gate = gate().await;
    let guest = gate.log_in(GUEST, GUEST, HERE).await.expect("guest is welcome");
    make(&gate, "ann", "secret", "").await;
    make(&gate, "ann", "other", "monitoring").await;
    let (_, token) = gate.make_token(&guest, "ann", "ci", Scope::default(), None).await.expect("made");
    let told: Vec<String> = gate
        .audit()
        .recent()
        .iter()
        .rev()
        .map(|deed| format!("{} {} {} → {}", deed.action, deed.object, deed.before, deed.after))
        .collect();
    let all = told.join("\n");
    for secret in ["secret", "other", "$argon2id", token.reveal(), "digest"] {
        assert!(!all.contains(secret), "{all}");
    }
    assert_eq!(
        told[3],
        r#"user.put ann {"limits":{},"password":"argon2id","tags":[]} → {"limits":{},"password":"argon2id","password_changed":true,"tags":["monitoring"]}"#
    );
    let last = gate.audit().recent().remove(0);
    assert_eq!((last.action, last.user.as_deref(), last.from), ("token.put", Some(GUEST), Some(HERE)));
}
