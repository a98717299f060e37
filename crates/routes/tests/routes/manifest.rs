//! Manifests: what is read, what is refused and how it is told, what changes.

use expect_test::{Expect, expect};
use overtake_routes::{Manifest, ROUTES_MAX, Reading, TTL_FOR_EVER, diff};

/// Of the design that the format comes from, as it stands there.
const DEPLOYMENT: &str = include_str!("../corpus/deployment.txt");
/// The twin of an edge hub as `az iot hub module-twin show` prints it.
const TWIN: &str = include_str!("../corpus/twin.txt");

fn read(json: &str) -> Manifest {
    Manifest::from_json(json).unwrap_or_else(|error| panic!("{error}"))
}

fn reads(json: &str, wanted: Expect) {
    let manifest = read(json);
    let ttl = manifest.ttl_secs.map_or("none".to_owned(), |secs| secs.to_string());
    let mut picture = format!("{} ttl {ttl}\n", manifest.schema_version);
    for route in &manifest.routes {
        let fallback = if route.is_fallback { " fallback" } else { "" };
        let (name, text, priority, ttl) = (&route.name, &route.route, route.priority, route.ttl_secs);
        picture += &format!("{name}: {text} {priority:?} {ttl:?} → {:?}{fallback}\n", manifest.ttl_of(route));
    }
    wanted.assert_eq(&picture);
    assert_eq!(read(&manifest.to_json()), manifest, "what is printed is the same");
}

fn refuses(json: &str, wanted: Expect) {
    wanted.assert_eq(&format!("{}\n", Manifest::from_json(json).expect_err("it is refused")));
}

#[test]
fn a_deployment_is_read() {
    reads(
        DEPLOYMENT,
        expect![[r#"
            1.1 ttl 7200
            floorCamAlerts: FROM /messages/modules/FloorCamMod/outputs/P0_Alerts INTO $upstream Some(0) Some(86400) → Some(86400)
            secCamAlerts: FROM /messages/modules/SecCamMod/outputs/P0_Alerts INTO $upstream Some(0) Some(86400) → Some(86400)
            secCamData: FROM /messages/modules/SecCamMod/outputs/P1_Data INTO $upstream Some(1) Some(1800) → Some(1800)
            upstream: FROM /messages/* INTO $upstream None None → Some(7200)
        "#]],
    );
}

#[test]
fn a_part_of_a_layered_deployment_is_not_dropped_in_silence() {
    let beside = r#"{"modulesContent": {"$edgeHub": {
        "properties.desired": {"routes": {"a": "FROM /* INTO $upstream"}},
        "properties.desired.routes.y": "FROM /y INTO $upstream"}}}"#;
    let reading = Reading::from_json(beside).expect("a deployment");
    assert_eq!(reading.manifest.routes.len(), 1);
    expect![[r#"
        /modulesContent/$edgeHub/properties.desired.routes.y: a part of a layered deployment, which is passed over: write it into `properties.desired`
    "#]].assert_eq(&format!("{}\n", reading.notes.join("\n")));
    refuses(
        r#"{"modulesContent": {"$edgeHub": {"properties.desired.routes.y": "FROM /y INTO $upstream"}}}"#,
        expect![[r#"
            /modulesContent/$edgeHub/properties.desired.routes.y: this is a part of a layered deployment, which is not put together here
              hint: write the routes into one object: `{"routes": {…}}`, or that inside `properties.desired`
        "#]],
    );
}

#[test]
fn the_section_stands_anywhere_on_the_way_to_it() {
    let section = r#"{"routes": {"a": "FROM /* INTO $upstream"}}"#;
    let bare = read(section);
    for document in [
        format!(r#"{{"properties.desired": {section}}}"#),
        format!(r#"{{"$edgeHub": {{"properties": {{"desired": {section}}}}}}}"#),
        format!(
            r#"{{"modulesContent": {{"$edgeAgent": {{"x": 1}}, "$edgeHub": {{"properties.desired": {section}}}}}}}"#
        ),
        format!(
            r#"{{"$schema-template": "4", "content": {{"modulesContent": {{"$edgeHub": {{"properties.desired": {section}}}}}}}}}"#
        ),
    ] {
        assert_eq!(read(&document), bare, "{document}");
    }
}

#[test]
fn a_twin_is_read_as_the_hub_prints_it() {
    reads(
        TWIN,
        expect![[r#"
            1.2 ttl 7200
            alerts: FROM /messages/modules/camera/outputs/alerts WHERE $body.status != 'running' INTO $upstream Some(0) Some(4294967295) → Some(4294967295)
            leafs: FROM /messages/* WHERE NOT is_defined($connectionModuleId) INTO $upstream None None → Some(7200)
            toFilter: FROM /messages/modules/camera/outputs/* INTO BrokeredEndpoint("/modules/filter/inputs/frames") Some(4) None → Some(7200)
        "#]],
    );
    let notes = Reading::from_json(TWIN).expect("a twin").notes;
    assert_eq!(
        notes,
        [
            "/properties/desired/mqttBroker: `mqttBroker` says nothing about routes, and is passed over",
            "/properties/desired/storeAndForwardConfiguration/storeLimits: `storeLimits` says nothing about routes, and is passed over",
        ]
    );
    // A module prints what is between `properties` and its end.
    let (_, properties) = TWIN.split_once("\"properties\": ").expect("a twin");
    let (properties, _) = properties.split_once(",\n  \"status\"").expect("more follows");
    assert_eq!(read(properties), read(TWIN));
}

#[test]
fn each_version_of_the_format_is_read() {
    for version in ["1.0", "1.1", "1.2", "1.3", "1.0.0", "1.1.0", "1.2.0", "1.3.0"] {
        let twin = TWIN.replace("\"schemaVersion\": \"1.2\"", &format!("\"schemaVersion\": \"{version}\""));
        assert_eq!(read(&twin).schema_version.to_string(), version[..3], "{version}");
        assert_eq!(read(&twin).routes, read(TWIN).routes);
    }
}

#[test]
fn a_ttl_of_minus_one_is_for_ever() {
    let manifest = read(
        r#"{"routes": {"a": {"route": "FROM /* INTO $upstream", "timeToLiveSecs": -1}, "b": "FROM /* INTO $upstream"},
            "storeAndForwardConfiguration": {"timeToLiveSecs": 7200}}"#,
    );
    let ttls =
        |manifest: &Manifest| manifest.routes.iter().map(|route| manifest.ttl_of(route)).collect::<Vec<_>>();
    assert_eq!(ttls(&manifest), [Some(TTL_FOR_EVER), Some(7_200)]);
    let all = read(&manifest.to_json().replace("7200", "-1"));
    assert_eq!(ttls(&all), [Some(TTL_FOR_EVER); 2]);
    assert!(all.to_json().contains(r#""timeToLiveSecs": -1"#), "{}", all.to_json());
    assert_eq!(
        Manifest::from_toml("[routes]\n[storeAndForwardConfiguration]\ntimeToLiveSecs = -1")
            .map(|it| it.ttl_secs),
        Ok(Some(TTL_FOR_EVER))
    );
    let changes = diff(&manifest, &all).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(changes, ["~ storeAndForwardConfiguration.timeToLiveSecs: 7200 → for ever"]);
}

#[test]
fn toml_says_the_same() {
    let toml = r#"
        schemaVersion = "1.1.0"
        [routes]
        upstream = "FROM /messages/* INTO $upstream"
        [routes.secCamAlerts]
        route = "FROM /messages/modules/SecCamMod/outputs/P0_Alerts INTO $upstream"
        priority = 0
        timeToLiveSecs = 86400
        [routes.floorCamAlerts]
        route = "FROM /messages/modules/FloorCamMod/outputs/P0_Alerts INTO $upstream"
        priority = 0
        timeToLiveSecs = 86400
        [routes.secCamData]
        route = "FROM /messages/modules/SecCamMod/outputs/P1_Data INTO $upstream"
        priority = 1
        timeToLiveSecs = 1800
        [storeAndForwardConfiguration]
        timeToLiveSecs = 7200
    "#;
    assert_eq!(Manifest::from_toml(toml).expect("a manifest"), read(DEPLOYMENT));
    let by_name = |name: &str, text: &str| {
        Reading::from_file(Some(name.as_ref()), text).ok().map(|reading| reading.manifest)
    };
    let (json, toml) = (Some(read(DEPLOYMENT)), toml);
    assert_eq!([by_name("a.toml", toml), by_name("-", toml)], [json.clone(), json.clone()]);
    let object = format!("{{{DEPLOYMENT}}}");
    assert_eq!([by_name("a.json", DEPLOYMENT), by_name("-", &object)], [json.clone(), json.clone()]);
    assert_eq!([by_name("a.toml", DEPLOYMENT), by_name("-", DEPLOYMENT)], [None, json]);
    let error = Manifest::from_toml("[routes]\na = 5\nb = ").expect_err("it is no TOML");
    assert!(error.to_string().starts_with("this is no TOML: "), "{error}");
}

#[test]
fn an_object_wins_over_a_string_of_the_same_name_wherever_it_stands() {
    let object = r#""a": {"route": "FROM /object INTO $upstream", "priority": 3}"#;
    let string = r#""a": "FROM /string INTO $upstream""#;
    let later = r#""a": "FROM /later INTO $upstream""#;
    for routes in
        [format!("{object}, {string}"), format!("{string}, {object}"), format!("{string}, {object}, {later}")]
    {
        let manifest = read(&format!(r#"{{"routes": {{{routes}}}}}"#));
        assert_eq!(manifest.routes.len(), 1);
        assert_eq!(
            (manifest.routes[0].route.source.path(), manifest.routes[0].priority),
            ("/object", Some(3))
        );
    }
    let manifest = read(&format!(r#"{{"routes": {{{string}, {later}}}}}"#));
    assert_eq!(manifest.routes[0].route.source.path(), "/later");
}

#[test]
fn limits_are_within() {
    reads(
        r#"{"routes": {"a": {"route": "FROM /* INTO $upstream", "priority": 9, "timeToLiveSecs": 4294967295, "fallback": true},
                       "b": {"route": "FROM /* INTO $upstream", "priority": 0, "timeToLiveSecs": 0, "fallback": false}},
            "storeAndForwardConfiguration": {"timeToLiveSecs": 0}, "schemaVersion": "1.3"}"#,
        expect![[r#"
            1.3 ttl 0
            a: FROM /* INTO $upstream Some(9) Some(4294967295) → Some(4294967295) fallback
            b: FROM /* INTO $upstream Some(0) Some(0) → None
        "#]],
    );
    reads(
        r#"{"routes": {}}"#,
        expect![[r#"
        1.1 ttl none
    "#]],
    );
}

#[test]
fn all_that_is_wrong_is_told_together() {
    refuses(
        r#"{"routes": {
            "a.b": "FROM /* INTO $upstream",
            "bad": "FROM /* WHERE severity == 'high' INTO $upstream",
            "list": [],
            "object": {"rout": "FROM /* INTO $upstream", "priority": 10, "timeToLiveSecs": 4294967296},
            "odd": {"route": 5, "priority": "high", "timeToLiveSecs": -2, "fallback": 1},
            "half": {"route": "FROM /* INTO $upstraem", "priority": 0.5}},
          "schemaVersion": "2.0", "storeAndForwardConfiguration": {"timeToLive": 5, "timeToLiveSecs": "5"}, "route": {}}"#,
        expect![[r#"
            /route: there is no key `route` here
              hint: did you mean `routes`?
            /routes/a.b: `a.b` is no name of a route
              hint: a name has at least one character, and none of `.`, `$`, `#` and blank
            /routes/bad: there is no operator `==`
              FROM /* WHERE severity == 'high' INTO $upstream
                                     ^^
              hint: write `=`
            /routes/half/route: there is no sink `$upstraem`
              FROM /* INTO $upstraem
                           ^^^^^^^^^
              hint: did you mean `$upstream`?
            /routes/half/priority: a whole number from 0 to 9 is expected here, and this is 0.5
            /routes/list: a route is a string or an object, and this is an array
            /routes/object/rout: there is no key `rout` here
              hint: did you mean `route`?
            /routes/object/priority: a whole number from 0 to 9 is expected here, and this is 10
            /routes/object/timeToLiveSecs: a whole number from 0 to 4294967295, or -1 for ever, is expected here, and this is 4294967296
            /routes/object: there is no key `route`
              hint: write `"route": "FROM … INTO …"`
            /routes/odd/route: a route is a string, and this is a number
            /routes/odd/priority: a whole number from 0 to 9 is expected here, and this is a string
            /routes/odd/timeToLiveSecs: a whole number from 0 to 4294967295, or -1 for ever, is expected here, and this is -2
            /routes/odd/fallback: true or false is expected here, and this is a number
            /schemaVersion: this is no version of the format that is known
              hint: there are "1.0", "1.1", "1.2" and "1.3"
            /storeAndForwardConfiguration/timeToLive: there is no key `timeToLive` here
              hint: did you mean `timeToLiveSecs`?
            /storeAndForwardConfiguration/timeToLiveSecs: a whole number from 0 to 4294967295, or -1 for ever, is expected here, and this is a string
        "#]],
    );
}

#[test]
fn a_problem_says_which_route_and_where_from_the_top() {
    let error = Manifest::from_json(&DEPLOYMENT.replace("FROM /messages/*", "FRO /messages/*"))
        .expect_err("it is refused");
    let [problem] = &error.problems[..] else { panic!("{error}") };
    assert_eq!(problem.route.as_deref(), Some("upstream"));
    assert_eq!(problem.at, "/$edgeHub/properties.desired/routes/upstream");
    let error = Manifest::from_json(r#"{"routes": {"a/b~c": 5}}"#).expect_err("it is refused");
    assert_eq!(error.problems[0].at, "/routes/a~1b~0c");
}

#[test]
fn a_summary_names_the_routes_that_are_wrong() {
    let summary = |text: &str| Manifest::from_json(text).expect_err("it is refused").summary();
    let routes = |count: usize| {
        let all = (0..count).map(|at| format!(r#""r{at}": {{"route": "FORM /*", "priority": 99}}"#));
        format!(r#"{{"routes": {{{}}}}}"#, all.collect::<Vec<_>>().join(", "))
    };
    assert_eq!(summary(&routes(1)), "has a wrong route: `r0`");
    assert_eq!(summary(&routes(2)), "has wrong routes: `r0`, `r1`");
    assert_eq!(summary(&routes(6)), "has wrong routes: `r0`, `r1`, `r2`, `r3`, `r4` and others");
    assert_eq!(summary("{}"), "is no manifest");
    assert_eq!(summary(&routes(1).replacen('{', r#"{"schemaVersion": 5, "#, 1)), "is no manifest");
}

#[test]
fn what_is_no_manifest_says_so() {
    refuses(
        "",
        expect![[r#"
        this is no JSON: EOF while parsing a value at line 1 column 0
    "#]],
    );
    refuses(
        "[]",
        expect![[r#"
        an object is expected here, and this is an array
    "#]],
    );
    refuses(
        r#"{"schemaVersion": "1.0"}"#,
        expect![[r#"
        there is no key `routes`
          hint: a manifest is `{"routes": {…}}`, or has that inside `$edgeHub` and `properties.desired`
    "#]],
    );
    refuses(
        r#"{"routes": []}"#,
        expect![[r#"
        /routes: an object of routes by name is expected here, and this is an array
    "#]],
    );
    refuses(
        r#"{"routes": {"a": {"route": "FROM /a INTO $upstream", "priority": 1, "priority": 2}}, "routes": {}}"#,
        expect![[r#"
            /routes: the key `routes` is there twice
              hint: leave one of them
            /routes/a/priority: the key `priority` is there twice
              hint: leave one of them
        "#]],
    );
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Manifest::from_json(&deep).is_err());
    assert!(Manifest::from_toml(&format!("a = {deep}")).is_err());
}

#[test]
fn there_may_be_many_routes_and_not_more() {
    let routes = |count: usize| {
        let all = (0..count).map(|at| format!(r#""r{at}": "FROM /* INTO $upstream""#)).collect::<Vec<_>>();
        format!(r#"{{"routes": {{{}}}}}"#, all.join(", "))
    };
    assert_eq!(read(&routes(ROUTES_MAX)).routes.len(), ROUTES_MAX);
    assert!(Manifest::from_json(&routes(ROUTES_MAX + 1)).is_err());
    let wrong = routes(1_000).replace("FROM", "FORM");
    let error = Manifest::from_json(&wrong).expect_err("every route is wrong");
    assert_eq!((error.problems.len(), error.more), (100, 900));
    assert!(error.to_string().ends_with("\nand 900 more"));
}

#[test]
fn a_difference_is_told_by_name_and_field() {
    let old = read(
        r#"{"routes": {"a": "FROM /a INTO $upstream", "b": "FROM /b INTO $upstream", "same": "from /s  into $upstream"}}"#,
    );
    let new = read(
        r#"{"routes": {"b": {"route": "FROM /b WHERE x = 'y' INTO Queue('q')", "priority": 0, "timeToLiveSecs": 60, "fallback": true},
                       "c": {"route": "FROM /c INTO $upstream", "priority": 5}, "same": {"route": "FROM /s INTO $upstream", "timeToLiveSecs": 0}},
            "storeAndForwardConfiguration": {"timeToLiveSecs": 7200}}"#,
    );
    let told = diff(&old, &new).iter().map(|change| format!("{change}\n")).collect::<String>();
    expect![[r#"
        ~ storeAndForwardConfiguration.timeToLiveSecs: none → 7200
        - a: FROM /a INTO $upstream
        ~ b
            route: FROM /b INTO $upstream → FROM /b WHERE x = 'y' INTO Queue("q")
            priority: none → 0
            timeToLiveSecs: none → 60
            fallback: false → true
        + c: FROM /c INTO $upstream, priority 5
    "#]]
    .assert_eq(&told);
    assert_eq!(diff(&new, &new), []);
}
