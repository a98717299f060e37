//! Routes at a terminal: written, compared, set, tried, and what they did.

use expect_test::{Expect, expect};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::{Broker, Run, overtake};

const TOML: &str = r#"
schemaVersion = "1.1"

[routes]
all = "FROM /messages/* INTO $upstream"

[routes.alerts]
route = "from /messages/modules/Cam/* where severity = 'high' into $upstream"
priority = 0
timeToLiveSecs = 86400

[storeAndForwardConfiguration]
timeToLiveSecs = 7200
"#;

fn begin() -> (TempDir, Broker) {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = Broker::start(&dir.path().join("data"));
    (dir, broker)
}

#[track_caller]
fn check(broker: &Broker, words: &[&str], expect: Expect) {
    expect.assert_eq(&broker.run(words).picture());
}

#[test]
fn routes_are_compared_set_tried_and_listed() {
    let (dir, broker) = begin();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("it is written");
        path.to_str().expect("text").to_owned()
    };
    let manifest = file("routes.toml", TOML);
    check(
        &broker,
        &["routes", "list"],
        expect![[r#"
            exit 0
            no routes; `overtake routes apply FILE` sets some
        "#]],
    );
    check(
        &broker,
        &["routes", "diff", &manifest],
        expect![[r#"
        exit 0
        ~ storeAndForwardConfiguration.timeToLiveSecs: none → 7200
        + alerts: FROM /messages/modules/Cam/* WHERE severity = 'high' INTO $upstream, priority 0, timeToLiveSecs 86400
        + all: FROM /messages/* INTO $upstream
        nothing was changed
    "#]],
    );
    check(
        &broker,
        &["routes", "apply", &manifest],
        expect![[r#"
        exit 0
        ~ storeAndForwardConfiguration.timeToLiveSecs: none → 7200
        + alerts: FROM /messages/modules/Cam/* WHERE severity = 'high' INTO $upstream, priority 0, timeToLiveSecs 86400
        + all: FROM /messages/* INTO $upstream
        3 changes are made
    "#]],
    );
    check(
        &broker,
        &["routes", "apply", &manifest],
        expect![[r#"
        exit 0
        nothing changes
    "#]],
    );
    let message = file("message.json", r#"{"headers": {"severity": "high"}}"#);
    let path = "/messages/modules/Cam/outputs/o";
    check(
        &broker,
        &["routes", "test", path, "--message", &message],
        expect![[r#"
            exit 0
            ROUTE   SAYS     EXPRESSION         WHY
            alerts  matches  severity = 'high'  `severity` is 'high'
            all     matches
            a copy in $upstream by alerts at priority 0 for 86400s
        "#]],
    );
    check(
        &broker,
        &["routes", "test", path],
        expect![[r#"
            exit 0
            ROUTE   SAYS       EXPRESSION  WHY
            alerts  undefined  severity    property `severity` is not there
            all     matches
            a copy in $upstream by all for 7200s
        "#]],
    );
    check(
        &broker,
        &["routes", "test", "/elsewhere"],
        expect![[r#"
            exit 0
            ROUTE   SAYS          EXPRESSION  WHY
            alerts  other-source
            all     other-source
            nobody gets a copy
        "#]],
    );
    let path = "messages/modules/Cam/outputs/o";
    let exported = broker.run(&["routes", "export"]).ok();
    let formatted = broker.feed(&["routes", "fmt", "-"], TOML.as_bytes());
    assert_eq!(exported, formatted.ok());
    broker.run(&["exchange", "publish", "overtake.routes", path, "plain"]).ok();
    broker.run(&["exchange", "publish", "overtake.routes", path, "urgent", "--header", "severity=high"]).ok();
    check(
        &broker,
        &["routes", "list"],
        expect![[r#"
            exit 0
            NAME    PRIORITY     TTL  MATCHED  UNDEFINED  COPIES  ROUTE
            alerts         0  86400s        1          1       1  FROM /messages/modules/Cam/* WHERE severity = 'high' INTO $upstream
            all            -   7200s        2          0       1  FROM /messages/* INTO $upstream
            2 published, 0 unrouted, 0 by fallback routes

            QUEUE      LANE            READY  LEASED  EXPIRED
            $upstream  $upstream_Pri0      1       0        0
                       $upstream           1       0        0
        "#]],
    );
    check(
        &broker,
        &["consume", "$upstream", "--count", "2"],
        expect![[r#"
            exit 0
            urgent
            plain
        "#]],
    );
    broker.stop();
}

#[test]
fn a_manifest_that_does_not_hold_says_where_and_why() {
    let (dir, broker) = begin();
    let path = dir.path().join("wrong.json");
    let wrong = r#"{"routes": {
        "a": "FROM /messages/* WHERE severity == 'high' INTO $upstream",
        "b": {"route": "FROM /x INTO Queu('q')", "priority": 10}}}"#;
    std::fs::write(&path, wrong).expect("it is written");
    let run = broker.run(&["routes", "apply", path.to_str().expect("text")]);
    let said = run.picture().replace(dir.path().to_str().expect("text"), "DIR");
    expect![[r#"
        exit 1
        error: DIR/wrong.json has wrong routes: `a`, `b`
        /routes/a: there is no operator `==`
          FROM /messages/* WHERE severity == 'high' INTO $upstream
                                          ^^
          hint: write `=`
        /routes/b/route: there is no sink `Queu`
          FROM /x INTO Queu('q')
                       ^^^^
          hint: did you mean `Queue`?
        /routes/b/priority: a whole number from 0 to 9 is expected here, and this is 10
         hint: correct it; nothing was changed
    "#]]
    .assert_eq(&said);
    let run = broker.feed(&["routes", "fmt", "-"], TOML.as_bytes());
    expect![[r#"
        exit 0
        {
          "routes": {
            "alerts": {
              "priority": 0,
              "route": "FROM /messages/modules/Cam/* WHERE severity = 'high' INTO $upstream",
              "timeToLiveSecs": 86400
            },
            "all": {
              "route": "FROM /messages/* INTO $upstream"
            }
          },
          "schemaVersion": "1.1",
          "storeAndForwardConfiguration": {
            "timeToLiveSecs": 7200
          }
        }
    "#]]
    .assert_eq(&run.picture());
    let twin = r#"{"desired": {"$metadata": {}, "$version": 3, "mqttBroker": {}, "schemaVersion": "1.3",
        "routes": {"a": {"route": "FROM /* INTO $upstream", "timeToLiveSecs": -1}}}, "reported": {"$version": 1}}"#;
    let run = broker.feed(&["routes", "apply", "-"], twin.as_bytes());
    expect![[r#"
        exit 0
        + a: FROM /* INTO $upstream, timeToLiveSecs for ever
        1 change is made
        note: /desired/mqttBroker: `mqttBroker` says nothing about routes, and is passed over
    "#]]
    .assert_eq(&run.picture());
    let run = broker.feed(&["--quiet", "routes", "apply", "-"], twin.as_bytes());
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("nothing changes\n", ""));
    assert!(broker.run(&["routes", "list"]).stdout.contains("  for ever  "));
    let tried = broker.run(&["routes", "test", "/x"]).stdout;
    assert!(tried.contains("a copy in $upstream by a for ever\n"), "{tried}");
    broker.stop();
}

#[test]
fn a_file_of_routes_holds_from_the_start_and_as_it_changes() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("routes.toml");
    let set = |text: &str| {
        // In one move, as whoever deploys does.
        let new = dir.path().join("new");
        std::fs::write(&new, text).expect("it is written");
        std::fs::rename(&new, &path).expect("it is put there");
    };
    let flags = ["--routes-file", path.to_str().expect("text")];
    let refused = |words: &[&str]| {
        let mut command = overtake();
        command.args(["serve", "--http", "127.0.0.1:0", "--amqp", "off", "--data-dir"]);
        command.arg(dir.path().join("data")).args(words);
        Run::of(command.output().expect("it runs"))
    };
    let names = |broker: &Broker| {
        let seen = broker.run(&["routes", "list", "--json"]).json();
        let routes = seen["routes"].as_array().expect("routes").clone();
        routes.iter().map(|route| route["name"].as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };

    let none = refused(&flags);
    assert!(none.stderr.contains("cannot set the routes in"), "{}", none.stderr);
    set("[routes]\na = 'FROM /* INTO Queue(\"gone\")'\n");
    let none = refused(&flags);
    assert!(none.stderr.contains("routes.a: there is no queue `gone`"), "{}", none.stderr);

    set("[routes]\na = 'FROM /a INTO $upstream'\n");
    let mut broker = Broker::start_with(&dir.path().join("data"), &flags);
    assert_eq!(names(&broker), ["a"]);
    set("[routes]\na = 'FROM /a INTO $upstream'\nb = 'FROM /b INTO Endpoint(\"b\")'\n");
    broker.await_line("+ b: ");
    assert_eq!(names(&broker), ["a", "b"]);
    set("mqttBroker = {}\n[routes]\na = 'FROM /a INTO $upstream'\nb = 'FROM /b INTO Endpoint(\"b\")'\n");
    broker.await_line("/mqttBroker: `mqttBroker` says nothing about routes, and is passed over");
    set("[routes]\na = 'FROM /a INTO'\n");
    broker.await_line("the routes stay as they are");
    assert_eq!(names(&broker), ["a", "b"]);
    std::fs::remove_file(&path).expect("it was there");
    broker.await_line("No such file");
    set("[routes]\nc = 'FROM /c INTO Queue(\"later\")'\n");
    broker.await_line("there is no queue `later`");
    broker.run(&["queue", "declare", "later"]).ok();
    broker.await_line("+ c: ");
    assert_eq!(names(&broker), ["c"]);
    // What somebody else sets holds until the file changes, or is asked for.
    broker.feed(&["routes", "apply", "-"], b"[routes]\n").ok();
    assert_eq!(names(&broker), [""; 0]);
    broker.signal(Signal::HUP);
    broker.await_line("+ c: ");
    assert_eq!(names(&broker), ["c"]);
}
