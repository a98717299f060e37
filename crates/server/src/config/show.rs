//! The configuration as it is in force, as a file that says the same.

use std::fmt::Write;

use overtake_lane::Settings;
use serde::Serialize;

use super::{Config, Configured, Origin};

/// Writes the configuration as TOML; with `origins`, each line says where its value came from.
#[must_use]
pub fn show(config: &Config, origins: bool) -> String {
    let mut out = String::new();
    let mut section = "";
    for (path, value, origin) in config.entries() {
        let (of, key) = path.rsplit_once('.').unwrap_or(("", path));
        if of != section {
            let gap = if section.is_empty() { "" } else { "\n" };
            let _ = writeln!(out, "{gap}[{of}]");
            section = of;
        }
        line(&mut out, &format!("{key} = {value}"), origins.then_some(origin));
    }
    for queue in &config.queues {
        let header = format!("[queues.{}]", super::value::quoted(&queue.name));
        out.push('\n');
        line(&mut out, &header, origins.then_some(&queue.origin));
        out.push_str(&table(&queue.settings));
    }
    for endpoint in &config.endpoints {
        connector(&mut out, "endpoints", endpoint, origins);
    }
    for source in &config.sources {
        connector(&mut out, "sources", source, origins);
    }
    out
}

/// An endpoint or a source, one line for each key; what may be a secret is masked.
fn connector<C: Serialize>(out: &mut String, of: &str, one: &Configured<C>, origins: bool) {
    out.push('\n');
    let header = format!("[{of}.{}]", super::value::quoted(&one.name));
    line(out, &header, origins.then_some(&one.origin));
    if let serde_json::Value::Object(all) = overtake_connectors::shown(&one.definition) {
        for (key, value) in &all {
            let _ = writeln!(out, "{key} = {}", inline(value));
        }
    }
}

fn line(out: &mut String, text: &str, origin: Option<&Origin>) {
    let _ = match origin {
        Some(origin) => writeln!(out, "{text:<42} # {origin}"),
        None => writeln!(out, "{text}"),
    };
}

/// The settings of a queue that are not the default ones, one line each.
fn table(settings: &Settings) -> String {
    let as_json = |settings: &Settings| serde_json::to_value(settings).unwrap_or_default();
    let default = as_json(&Settings::default());
    let mut out = String::new();
    if let serde_json::Value::Object(all) = as_json(settings) {
        for (key, value) in all.iter().filter(|(key, value)| default.get(key) != Some(value)) {
            let _ = writeln!(out, "{key} = {}", inline(value));
        }
    }
    out
}

/// A JSON value as TOML writes it in one line.
fn inline(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "{}".to_owned(),
        serde_json::Value::String(text) => super::value::quoted(text),
        serde_json::Value::Array(items) => {
            format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        serde_json::Value::Object(table) => {
            let pairs =
                table.iter().map(|(key, value)| format!("{} = {}", super::value::quoted(key), inline(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    }
}
