//! Who changed what, when, from where, and how it was before.
//!
//! Every administrative action is one event of the log (target `overtake::audit`), one line of JSON in a file where one is
//! named, and remembered for a while to be asked for. No password, hash or token is ever in it.

use std::collections::VecDeque;
use std::io::Write;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use overtake_lane::Time;
use serde::Serialize;
use serde_json::Value;

use crate::identity::Identity;

/// Most deeds that are remembered.
pub const REMEMBERED_MAX: usize = 1_000;

/// An administrative action that was done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deed {
    /// When, ms since 1970.
    #[serde(rename = "at_ms")]
    pub at: Time,
    /// Who; `None`: the server itself, because of its configuration.
    pub user: Option<Arc<str>>,
    /// The number of the token by which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Arc<str>>,
    /// From which address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
    /// What was done: a noun, a dot and a verb, as `user.put`.
    pub action: &'static str,
    /// In which virtual host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vhost: Option<Arc<str>>,
    /// To what, by its name.
    pub object: String,
    /// How it was; null: not there.
    pub before: Value,
    /// How it is; null: not there any more.
    pub after: Value,
}

impl Deed {
    /// Something that somebody did, of which it is not told how it was or is.
    #[must_use]
    pub fn of(who: Option<&Identity>, action: &'static str, object: impl Into<String>) -> Self {
        Self {
            at: Time(0),
            user: who.map(|who| Arc::clone(who.user())),
            token: who.and_then(|who| who.token().cloned()),
            from: who.and_then(Identity::from),
            action,
            vhost: None,
            object: object.into(),
            before: Value::Null,
            after: Value::Null,
        }
    }

    /// In this virtual host.
    #[must_use]
    pub fn within(self, vhost: &str) -> Self {
        Self { vhost: Some(vhost.into()), ..self }
    }

    /// How it was and how it is.
    #[must_use]
    pub fn from_to(self, before: impl Serialize, after: impl Serialize) -> Self {
        let (before, after) = (serde_json::to_value(before), serde_json::to_value(after));
        Self { before: before.unwrap_or_default(), after: after.unwrap_or_default(), ..self }
    }
}

/// Where deeds are written.
#[derive(Default)]
pub struct Audit {
    recent: Mutex<VecDeque<Deed>>,
    file: Mutex<Option<Box<dyn Write + Send>>>,
}

impl Audit {
    /// From now on deeds are also written here, a line of JSON each. `None`: nowhere else.
    pub fn write_to(&self, file: Option<Box<dyn Write + Send>>) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file;
    }

    /// Something was done now.
    pub fn record(&self, now: Time, deed: Deed) {
        let deed = Deed { at: now, ..deed };
        tracing::info!(
            target: "overtake::audit",
            user = deed.user.as_deref(),
            token = deed.token.as_deref(),
            from = deed.from.map(tracing::field::display),
            vhost = deed.vhost.as_deref(),
            object = deed.object,
            before = shown(&deed.before),
            after = shown(&deed.after),
            "{}",
            deed.action
        );
        if let Some(file) = &mut *self.file.lock().unwrap_or_else(PoisonError::into_inner) {
            let mut line = serde_json::to_vec(&deed).expect("plain data is JSON");
            line.push(b'\n');
            if let Err(error) = file.write_all(&line).and_then(|()| file.flush()) {
                tracing::error!("the audit file cannot be written: {error}");
            }
        }
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == REMEMBERED_MAX {
            recent.pop_front();
        }
        recent.push_back(deed);
    }

    /// What was done last, the newest first, since the server was started.
    #[must_use]
    pub fn recent(&self) -> Vec<Deed> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().cloned().collect()
    }
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Audit")
    }
}

fn shown(value: &Value) -> Option<String> {
    (!value.is_null()).then(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A file that can be read while it is written.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("not poisoned").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_deed_says_who_what_when_before_and_after() {
        let (audit, lines) = (Audit::default(), Lines::default());
        audit.write_to(Some(Box::new(lines.clone())));
        let who = Identity::almighty("ann");
        let deed =
            Deed::of(Some(&who), "queue.delete", "q").within("/").from_to(json!({"ready": 1}), Value::Null);
        audit.record(Time(7), deed);
        let line = String::from_utf8(lines.0.lock().expect("not poisoned").clone()).expect("text");
        let expect = r#"{"at_ms":7,"user":"ann","action":"queue.delete","vhost":"/","object":"q","before":{"ready":1},"after":null}"#;
        assert_eq!(line, format!("{expect}\n"));
        assert_eq!(audit.recent().len(), 1);
    }

    #[test]
    fn only_the_last_deeds_are_remembered() {
        let audit = Audit::default();
        for at in 0..REMEMBERED_MAX + 2 {
            audit.record(Time(at as u64), Deed::of(None, "user.put", "x"));
        }
        let recent = audit.recent();
        assert_eq!((recent.len(), recent[0].at), (REMEMBERED_MAX, Time(REMEMBERED_MAX as u64 + 1)));
    }
}
