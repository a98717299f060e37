//! Routes: where a message goes that is published into them, how urgently, for how long.

use std::sync::Arc;

use overtake_lane::{BrowseOrder, Refusal, Scheme, Settings, VhostSettings};
use overtake_routes::Manifest;

use super::{ENDS, Fixture, Story, refused, settings};
use crate::api::{Browse, Engine, LeaseRequest, NewMessage, Target};
use crate::routes::{ROUTES_EXCHANGE, RouteCounts, RouteSet};

const SHORT_MS: u64 = 1_000;
/// The deployment of the design that routes come from.
const DEPLOYMENT: &str = r#"{"$edgeHub": {"properties.desired": {"schemaVersion": "1.1.0", "routes": {
    "secCamAlerts": {
        "route": "FROM /messages/modules/SecCamMod/outputs/P0_Alerts INTO $upstream",
        "priority": 0, "timeToLiveSecs": 86400},
    "floorCamAlerts": {
        "route": "FROM /messages/modules/FloorCamMod/outputs/P0_Alerts INTO $upstream",
        "priority": 0, "timeToLiveSecs": 86400},
    "secCamData": {
        "route": "FROM /messages/modules/SecCamMod/outputs/P1_Data INTO $upstream",
        "priority": 1, "timeToLiveSecs": 1800},
    "upstream": "FROM /messages/* INTO $upstream"},
    "storeAndForwardConfiguration": {"timeToLiveSecs": 7200}}}}"#;
const ALERTS: &str = "/messages/modules/SecCamMod/outputs/P0_Alerts";
const DATA: &str = "/messages/modules/SecCamMod/outputs/P1_Data";
const OTHER: &str = "/messages/modules/Thermostat/outputs/temperature";

async fn set<F: Fixture>(story: &Story<F>, manifest: &str) {
    let manifest = Manifest::from_json(manifest).unwrap_or_else(|error| panic!("{error}"));
    story.engine().set_routes(Arc::new(RouteSet::new(manifest))).await.expect("they are set");
}

fn message(path: &str, mandatory: bool) -> NewMessage {
    let to = Target::Exchange {
        name: ROUTES_EXCHANGE.into(),
        routing_key: path.into(),
        more_keys: Vec::new(),
        mandatory,
    };
    NewMessage { to, ..NewMessage::default() }
}

/// So many copies.
async fn publish<F: Fixture>(story: &Story<F>, path: &str) -> usize {
    story.engine().publish(vec![message(path, false)]).await.expect("taken").len()
}

/// What waits in a queue, the most urgent first: `path priority ttl in seconds`.
async fn waiting(engine: &dyn Engine, queue: &str) -> String {
    let browse = Browse { order: BrowseOrder::Dispatch, limit: 100, ..Browse::default() };
    let page = engine.browse(queue, browse).await.expect("seen");
    let shown = page.messages.iter().map(|one| {
        let message = &one.message;
        let ttl = message
            .expires
            .map_or_else(|| "-".to_owned(), |at| ((at.0 - message.since.0) / 1_000).to_string());
        let path = one.content.route.keys[0].rsplit('/').next().unwrap_or_default().to_owned();
        format!("{path} {} {ttl}", message.priority)
    });
    shown.collect::<Vec<_>>().join(" · ")
}

/// The most urgent route wins and brings its time to live; what no route of its own has goes after all.
pub async fn an_endpoint_gets_one_copy_by_its_most_urgent_route<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    set(&story, DEPLOYMENT).await;
    let upstream = story.engine().queue("$upstream").await.expect("it was made");
    assert_eq!(upstream.settings.scheme, Scheme::Route);
    for path in [OTHER, DATA, ALERTS, "messages/modules/seccammod/outputs/p0_alerts"] {
        assert_eq!(publish(&story, path).await, 1, "{path}");
    }
    assert_eq!(
        waiting(&*story.engine(), "$upstream").await,
        "P0_Alerts 0 86400 · p0_alerts 0 86400 · P1_Data 1 1800 · temperature default 7200"
    );
    let names: Vec<_> = story
        .engine()
        .queue("$upstream")
        .await
        .expect("seen")
        .lanes
        .into_iter()
        .map(|lane| lane.lane)
        .collect();
    assert_eq!(names, ["0", "1", "default"].map(Arc::from));
}

/// It is counted, and refused if it must not be lost.
pub async fn a_message_that_no_route_matches_is_unrouted<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    assert_eq!(publish(&story, "/elsewhere").await, 0, "there are no routes");
    set(&story, DEPLOYMENT).await;
    assert_eq!(publish(&story, "/elsewhere").await, 0);
    assert_eq!(
        refused(story.engine().publish(vec![message("/elsewhere", true)]).await.map(drop)),
        Refusal::Unroutable
    );
    assert_eq!(publish(&story, ALERTS).await, 1);
    let view = story.engine().routes().await.expect("seen");
    assert_eq!((view.published, view.unrouted, view.fallback), (3, 2, 0));
    let of = |name: &str| {
        let table = view.set.table();
        let id = table.ids().find(|id| table.name(*id) == name).expect("it is there");
        view.counts[id.number()]
    };
    assert_eq!(of("secCamAlerts"), RouteCounts { matched: 1, undefined: 0, copies: 1 });
    assert_eq!(
        of("upstream"),
        RouteCounts { matched: 1, undefined: 0, copies: 0 },
        "a more urgent one had its sink"
    );
    assert_eq!(of("secCamData"), RouteCounts::default());
}

/// Only what no other route takes.
pub async fn a_fallback_route_takes_what_is_left<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    set(
        &story,
        r#"{"routes": {
        "hot": "FROM /* WHERE kind = 'hot' INTO Endpoint('hot')",
        "rest": {"route": "FROM /* INTO Endpoint('rest')", "fallback": true}}}"#,
    )
    .await;
    publish(&story, "/a").await;
    assert_eq!(
        (&*waiting(&*story.engine(), "hot").await, &*waiting(&*story.engine(), "rest").await),
        ("", "a default -")
    );
    let view = story.engine().routes().await.expect("seen");
    assert_eq!((view.published, view.unrouted, view.fallback), (1, 0, 1));
    assert_eq!(view.counts.iter().map(|route| route.undefined).sum::<u64>(), 1, "it has no kind");
}

/// In the words of its scheme; one that nobody declared gets nothing.
pub async fn a_queue_that_is_there_gets_copies_too<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| (s.scheme, s.ttl_ms) = (Scheme::Named, 60_000))).await;
    set(
        &story,
        r#"{"routes": {
        "a": {"route": "FROM /a INTO Queue('q')", "priority": 1, "timeToLiveSecs": 90},
        "b": "FROM /b INTO Queue('q')",
        "c": {"route": "FROM /a INTO Endpoint('q')", "priority": 9},
        "d": "FROM /a INTO Queue('nowhere')"}}"#,
    )
    .await;
    assert_eq!((publish(&story, "/a").await, publish(&story, "/b").await), (1, 1));
    assert_eq!(waiting(&*story.engine(), "q").await, "a critical 90 · b normal 60");
    assert_eq!(refused(story.engine().queue("nowhere").await.map(drop)), Refusal::NoSuchQueue);
}

/// Levels that no route names any more are served and cleaned like all others.
pub async fn other_routes_change_nothing_that_is_stored<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    set(&story, DEPLOYMENT).await;
    publish(&story, DATA).await;
    set(
        &story,
        r#"{"routes": {"all": {"route": "FROM /* INTO $upstream", "priority": 5, "timeToLiveSecs": 10}}}"#,
    )
    .await;
    publish(&story, ALERTS).await;
    assert_eq!(waiting(&*story.engine(), "$upstream").await, "P1_Data 1 1800 · P0_Alerts 5 10");
    set(&story, r#"{"routes": {}}"#).await;
    assert_eq!(publish(&story, ALERTS).await, 0);
    assert_eq!(waiting(&*story.engine(), "$upstream").await, "P1_Data 1 1800 · P0_Alerts 5 10");
    let leased = story.engine().lease(LeaseRequest::new("$upstream".into(), 9)).await.expect("leased");
    let levels: Vec<String> = leased.iter().map(|one| one.message.priority.to_string()).collect();
    assert_eq!(levels, ["1", "5"]);
}

/// What expires goes from a level that no route names any more, too.
pub async fn a_level_that_no_route_names_is_cleaned<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    set(&story, DEPLOYMENT).await;
    let short = NewMessage { ttl_ms: Some(SHORT_MS), ..message(DATA, false) };
    story.engine().publish(vec![short]).await.expect("taken");
    set(&story, r#"{"routes": {}}"#).await;
    story.advance(SHORT_MS).await;
    assert_eq!(waiting(&*story.engine(), "$upstream").await, "");
    let lanes = story.engine().queue("$upstream").await.expect("there").lanes;
    assert_eq!(lanes.iter().map(|lane| (&*lane.lane, lane.expired)).collect::<Vec<_>>(), [("1", 1)]);
}

/// With every end; what they did is counted anew.
pub async fn routes_survive<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    set(&story, r#"{"routes": {"gone": "FROM /gone INTO Endpoint('gone')"}}"#).await;
    set(&story, DEPLOYMENT).await;
    let before = story.engine().routes().await.expect("seen").set.manifest().clone();
    for end in ENDS {
        story.again(end).await;
        let view = story.engine().routes().await.expect("seen");
        assert_eq!((view.set.manifest(), view.published), (&before, 0), "{end:?}");
        assert_eq!(publish(&story, ALERTS).await, 1, "{end:?}");
    }
}

/// Another one has its own, or none; and they go with it.
pub async fn routes_are_of_their_virtual_host<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    set(&story, DEPLOYMENT).await;
    let vhost = story.engine().declare_vhost("tenant", VhostSettings::default()).await.expect("made");
    let tenant = story.engine().in_vhost(vhost);
    assert!(tenant.publish(vec![message(ALERTS, false)]).await.expect("taken").is_empty());
    let manifest = r#"{"routes": {"all": "FROM /* INTO Endpoint('theirs')"}}"#;
    let manifest = Manifest::from_json(manifest).expect("it holds");
    tenant.set_routes(Arc::new(RouteSet::new(manifest))).await.expect("set");
    tenant.publish(vec![message(ALERTS, false)]).await.expect("taken");
    assert_eq!(waiting(&*tenant, "theirs").await, "P0_Alerts default -");
    story.engine().delete_vhost("tenant").await.expect("deleted");
    assert_eq!(refused(tenant.routes().await.map(drop)), Refusal::NoSuchVhost);
    assert_eq!(refused(tenant.set_routes(Arc::default()).await), Refusal::NoSuchVhost);
    let of_tenant = |key: &&Arc<str>| key.starts_with(&format!("routes/{}", vhost.0));
    assert_eq!(
        story.engine().metadata().await.expect("seen").iter().map(|(key, _)| key).filter(of_tenant).count(),
        0
    );
    story.again(ENDS[0]).await;
    assert_eq!(publish(&story, ALERTS).await, 1);
}

/// All copies of a message, and all messages of a transaction, or none.
pub async fn one_copy_that_is_refused_undoes_all<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    set(&story, r#"{"routes": {"a": "FROM /* INTO Endpoint('a')", "b": "FROM /* INTO Endpoint('b')"}}"#)
        .await;
    let full = Settings {
        scheme: Scheme::Route,
        max_length: 1,
        overflow: overtake_lane::Overflow::Reject,
        ..Settings::default()
    };
    story.engine().declare_queue("b", full).await.expect("changed");
    assert_eq!(publish(&story, "/one").await, 2);
    assert_eq!(
        refused(story.engine().publish(vec![message("/two", false)]).await.map(drop)),
        Refusal::QueueFull
    );
    assert_eq!(waiting(&*story.engine(), "a").await, "one default -");
}
