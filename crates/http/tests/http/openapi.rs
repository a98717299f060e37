//! The OpenAPI document: complete, sound, and the same as the one that is committed.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

fn document() -> Value {
    serde_json::from_str(&overtake_http::openapi_json()).expect("JSON")
}

/// Each `METHOD path` of the document with its operation.
fn operations(document: &Value) -> Vec<(String, Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let of_path = |(path, item): (&String, &Value)| {
        let methods = item.as_object().expect("a path item");
        methods
            .iter()
            .map(|(method, op)| (format!("{} {path}", method.to_uppercase()), op.clone()))
            .collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

const EVERY: &str = "
    DELETE /v1/categories/{category}
    DELETE /v1/categories/{category}/groups/{group}
    GET /v1/categories
    GET /v1/categories/{category}
    GET /v1/categories/{category}/groups/{group}
    PUT /v1/categories/{category}
    PUT /v1/categories/{category}/groups/{group}
    DELETE /v1/cluster/orphans/{number}
    DELETE /v1/exchanges/{exchange}
    DELETE /v1/exchanges/{exchange}/bindings
    DELETE /v1/queues/{queue}
    DELETE /v1/queues/{queue}/messages/{id}
    DELETE /v1/schedules/{schedule}
    DELETE /v1/tokens/{token}
    DELETE /v1/users/{user}
    DELETE /v1/users/{user}/permissions/{vhost}
    DELETE /v1/vhosts/{vhost}
    GET /api/v1/admin/executions
    GET /api/v1/admin/executions/queue
    GET /api/v1/admin/executions/{id}
    POST /api/v1/admin/executions/queue/pause
    POST /v1/cluster/orphans/{number}/adopt
    POST /api/v1/admin/executions/queue/resume
    POST /api/v1/admin/executions/{id}/cancel
    POST /api/v1/admin/executions/{id}/retry
    PUT /api/v1/admin/executions/queue/max_concurrent
    PUT /api/v1/admin/executions/{id}/priority
    GET /healthz
    GET /livez
    GET /metrics
    GET /openapi.json
    GET /readyz
    GET /v1/audit
    GET /v1/cluster
    GET /v1/cluster/orphans
    GET /v1/exchanges
    GET /v1/exchanges/{exchange}
    GET /v1/exchanges/{exchange}/bindings
    DELETE /v1/jobs/{job}
    GET /v1/jobs
    GET /v1/jobs/{job}
    GET /v1/queues
    GET /v1/queues/{queue}
    GET /v1/queues/{queue}/messages
    GET /v1/queues/{queue}/messages/{id}
    GET /v1/overview
    GET /v1/overview/events
    GET /v1/overview/history
    GET /v1/routes
    GET /v1/routes/manifest
    PUT /v1/routes
    POST /v1/routes/test
    POST /v1/topics/{path}
    GET /v1/schedules
    GET /v1/schedules/{schedule}
    GET /v1/store/snapshot
    GET /v1/tokens
    GET /v1/users
    GET /v1/users/{user}
    GET /v1/vhosts
    GET /v1/vhosts/{vhost}
    GET /v1/whoami
    POST /v1/drain
    POST /v1/session
    DELETE /v1/session
    POST /v1/exchanges/{exchange}/bindings
    POST /v1/exchanges/{exchange}/messages
    POST /v1/queues/{queue}/extend
    POST /v1/queues/{queue}/leases
    POST /v1/queues/{queue}/messages
    POST /v1/queues/{queue}/cancel
    POST /v1/queues/{queue}/messages/{id}/cancel
    POST /v1/queues/{queue}/purge
    POST /v1/queues/{queue}/remove
    POST /v1/queues/{queue}/replay
    POST /v1/queues/{queue}/reprioritise
    POST /v1/queues/{queue}/settle
    POST /v1/tokens
    POST /v1/transactions
    PUT /v1/exchanges/{exchange}
    PUT /v1/queues/{queue}
    PATCH /v1/queues/{queue}
    PUT /v1/queues/{queue}/messages/{id}/priority
    PUT /v1/schedules/{schedule}
    PUT /v1/users/{user}
    PUT /v1/users/{user}/permissions/{vhost}
    PUT /v1/vhosts/{vhost}
    GET /v1/endpoints/{endpoint}
    PUT /v1/endpoints/{endpoint}
    DELETE /v1/endpoints/{endpoint}
    GET /v1/sources/{source}
    PUT /v1/sources/{source}
    DELETE /v1/sources/{source}
    GET /v1/endpoints
    GET /v1/sources
    POST /v1/endpoints/{endpoint}/test
    POST /v1/endpoints/{endpoint}/pause
    POST /v1/endpoints/{endpoint}/resume
    POST /v1/sources/{source}/test
    POST /v1/sources/{source}/pause
    POST /v1/sources/{source}/resume";

#[test]
fn the_document_lists_every_route() {
    let listed: BTreeSet<_> = operations(&document()).into_iter().map(|(name, _)| name).collect();
    let expected: BTreeSet<_> =
        EVERY.split('\n').map(|line| line.trim().to_owned()).filter(|l| !l.is_empty()).collect();
    assert_eq!(listed, expected);
}

#[test]
fn every_operation_says_what_it_does_answers_and_refuses() {
    let mut ids = BTreeSet::new();
    for (name, operation) in operations(&document()) {
        let id = operation["operationId"].as_str().expect("an operationId").to_owned();
        assert!(ids.insert(id), "{name}: its operationId is there twice");
        assert!(operation["summary"].is_string(), "{name} has no summary");
        let responses = operation["responses"].as_object().expect("responses");
        assert!(responses.keys().any(|status| status.starts_with('2')), "{name} never succeeds");
        assert!(responses.contains_key("default"), "{name} has no problem");
        let in_path: BTreeSet<_> =
            name.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect();
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let said = parameters.iter().filter(|p| p["in"] == "path" && p["required"] == true);
        assert_eq!(said.filter_map(|p| p["name"].as_str()).collect::<BTreeSet<_>>(), in_path, "{name}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(value: &Value, document: &Value) {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(target)) = object.get("$ref") {
                    let pointer = target.strip_prefix('#').expect("references stay in the document");
                    assert!(document.pointer(pointer).is_some(), "{target} leads nowhere");
                }
                object.values().for_each(|value| walk(value, document));
            }
            Value::Array(array) => array.iter().for_each(|value| walk(value, document)),
            _ => {}
        }
    }
    let document = document();
    assert!(document["openapi"].as_str().expect("a version").starts_with("3.1"));
    walk(&document, &document);
}

/// `UPDATE=1 cargo test -p overtake-http --test http openapi` writes it anew.
#[test]
fn the_committed_document_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let current = overtake_http::openapi_json();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &current).expect("docs/openapi.json can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == current,
        "docs/openapi.json is not what the handlers say: UPDATE=1 cargo test -p overtake-http --test http openapi"
    );
}

/// Of two schemas of one name the document keeps one, and says of the other's operations what is not so.
#[test]
fn no_two_schemas_have_one_name() {
    fn names(directory: &Path, seen: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(directory).expect("readable") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                names(&path, seen);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("UTF-8");
            for item in text
                .split("#[derive(")
                .skip(1)
                .filter(|item| item.split_once(')').is_some_and(|(derived, _)| derived.contains("ToSchema")))
            {
                let before_fields = item.split_once('{').map_or(item, |(before, _)| before);
                let named = before_fields.split_once("schema(as = ").map(|(_, name)| name);
                let declared = ["struct ", "enum "].iter().find_map(|word| before_fields.split_once(word));
                let name = named.or(declared.map(|(_, name)| name)).expect("a name");
                let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                assert!(
                    seen.insert(name.clone()),
                    "{name} is the name of another schema, too: {}",
                    path.display()
                );
            }
        }
    }
    let mut seen = BTreeSet::new();
    names(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut seen);
    let document = document();
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    assert!(seen.iter().any(|name| schemas.contains_key(name)), "{seen:?}");
}
