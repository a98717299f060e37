//! Who holds a message, in a line.

use serde_json::Value;

use crate::table::one_line;

/// The status of a message or an execution, and whether its holder is asked to give it back.
pub(crate) fn status(one: &Value) -> String {
    let asked = if one["cancel_asked"] == true { ", cancel asked" } else { "" };
    one["status"].as_str().unwrap_or_default().to_owned() + asked
}

/// The user, what it calls itself, and where it is; empty where nothing is known.
pub(crate) fn text(holder: &Value) -> String {
    let first = |keys: [&str; 2]| keys.into_iter().find_map(|key| holder[key].as_str());
    let said = [holder["user"].as_str(), first(["worker", "consumer_tag"]), first(["connection", "address"])];
    let said: Vec<String> = said.into_iter().flatten().map(|text| one_line(text, usize::MAX)).collect();
    said.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_known_of_a_holder_is_told_in_one_line() {
        let check = |holder: Value, expect: &str| assert_eq!(text(&holder), expect);
        check(json!(null), "");
        check(json!({ "since": "2026-11-22T10:00:00.000Z" }), "");
        check(json!({ "user": "ann", "worker": "build-7:4711", "address": "::1" }), "ann build-7:4711 ::1");
        let pushed = json!({ "user": "ann", "consumer_tag": "c\n1", "connection": "a:1 -> b:2" });
        check(pushed, "ann c\\n1 a:1 -> b:2");
    }
}
