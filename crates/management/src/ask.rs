//! A request that was let in: who asks, for what, and with which body.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::StatusCode;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use overtake_access::{Desk, Identity, Office, Tag};
use overtake_engine::Engine;
use overtake_redact::{Strict, json_reason};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Track};

use crate::app::App;
use crate::problem::Problem;

/// A request.
pub(crate) struct Ask {
    pub(crate) app: Arc<App>,
    pub(crate) who: Identity,
    pub(crate) body: Bytes,
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
}

impl FromRequest<Arc<App>> for Ask {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let who = parts.extensions.get::<Identity>().cloned().ok_or_else(Problem::unknown_user)?;
        let params = RawPathParams::from_request_parts(&mut parts, app).await.map_err(Problem::bad)?;
        let path = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let query = read_query(parts.uri.query().unwrap_or_default())?;
        let most = usize::try_from(app.options.max_request_bytes).unwrap_or(usize::MAX);
        let body = match Limited::new(body, most).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                let reason = format!("the body has more than {most} bytes");
                return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", reason));
            }
            Err(error) => return Err(Problem::bad(format_args!("the body ended early: {error}"))),
        };
        Ok(Self { app: Arc::clone(app), who, body, path, query })
    }
}

fn read_query(query: &str) -> Result<Vec<(String, String)>, Problem> {
    let text = |part: &str| {
        let spaced = part.replace('+', " ");
        percent_decode_str(&spaced).decode_utf8().map(|text| text.into_owned()).map_err(Problem::bad)
    };
    let mut read = Vec::<(String, String)>::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (text(name)?, text(value)?);
        if !REPEATABLE.contains(&&*name) && read.iter().any(|(before, _)| *before == name) {
            return Err(Problem::bad(format_args!("the parameter `{name}` is there twice: send it once")));
        }
        read.push((name, value));
    }
    Ok(read)
}

/// Parameters that may be given more than once.
const REPEATABLE: [&str; 2] = ["family", "vhost"];

impl Ask {
    /// A name in the path.
    ///
    /// # Panics
    /// When the route has no such name.
    pub(crate) fn named(&self, name: &str) -> &str {
        self.in_path(name).expect("the route has this name")
    }

    /// A name in the path, if the route has it.
    pub(crate) fn in_path(&self, name: &str) -> Option<&str> {
        self.path.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that is there and not empty.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Every value of a parameter that may come more than once.
    pub(crate) fn params(&self, name: &str) -> impl Iterator<Item = &str> {
        self.query.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A number among the parameters.
    pub(crate) fn number(&self, name: &str) -> Result<Option<usize>, Problem> {
        let wrong = |_| Problem::bad(format_args!("{name} must be a whole number"));
        self.param(name).map(|text| text.parse().map_err(wrong)).transpose()
    }

    /// Whether a parameter says so.
    pub(crate) fn says(&self, name: &str) -> bool {
        self.param(name) == Some("true")
    }

    /// Whether a condition is given on which something is done: one that is misspelt must not count as none.
    pub(crate) fn demands(&self, name: &str) -> Result<bool, Problem> {
        match self.params(name).next() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(Problem::bad(format_args!("{name} is `{other}`: it must be true or false"))),
        }
    }

    /// What the body says. None is `{}`.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let body: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        read_json(body)
    }

    /// Those who make decisions on the whole broker ask the engine itself.
    pub(crate) fn engine(&self, tag: Tag) -> Result<&Arc<dyn Engine>, Problem> {
        Ok(self.app.desks.engine(&self.who, tag)?)
    }

    /// Where administrators change users and virtual hosts.
    pub(crate) fn office(&self) -> Result<Office, Problem> {
        Ok(self.app.desks.office(self.who.clone())?)
    }

    /// The desk in the virtual host of the path.
    pub(crate) async fn desk(&self) -> Result<Desk, Problem> {
        self.desk_in(self.named("vhost")).await
    }

    /// The desk in a virtual host that is there and may be entered, or seen.
    pub(crate) async fn desk_in(&self, vhost: &str) -> Result<Desk, Problem> {
        self.must_be_vhost(vhost).await?;
        self.who.must_enter(vhost).or_else(|no| self.who.must_have(Tag::Monitoring).map_err(|_| no))?;
        Ok(self.app.desks.desk(self.who.clone(), vhost).await?)
    }

    /// Whether there is such a virtual host.
    pub(crate) async fn must_be_vhost(&self, vhost: &str) -> Result<(), Problem> {
        let is_there = self.app.vhosts().await?.iter().any(|there| *there.name == *vhost);
        is_there.then_some(()).ok_or_else(Problem::not_found)
    }

    /// The desks in the virtual host of the path; where it names none, in all that may be seen.
    pub(crate) async fn desks(&self) -> Result<Vec<Desk>, Problem> {
        if let Some(vhost) = self.in_path("vhost") {
            return Ok(vec![self.desk_in(vhost).await?]);
        }
        let mut desks = Vec::new();
        for vhost in self.app.vhosts().await? {
            if self.sees(&vhost.name) {
                desks.push(self.app.desks.desk(self.who.clone(), &vhost.name).await?);
            }
        }
        Ok(desks)
    }

    /// Whether whoever asks may see a virtual host.
    pub(crate) fn sees(&self, vhost: &str) -> bool {
        self.who.must_enter(vhost).is_ok() || self.who.must_have(Tag::Monitoring).is_ok()
    }
}

/// Decodes JSON strictly ([`Strict`]). What is refused is read once more, so that its place is known.
pub(crate) fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = T::deserialize(Strict(&mut json)).and_then(|value| json.end().map(|()| value));
    read.map_err(|error| {
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let mut track = Track::new();
        let placed = T::deserialize(Strict(serde_path_to_error::Deserializer::new(&mut json, &mut track)));
        let why = with_place(&track.path(), &placed.err().unwrap_or(error));
        Problem::bad(format_args!("the body is not understood: {why}"))
    })
}

/// What is wrong with JSON, with its place before it, as `queues[3].durable`, and without the value.
pub(crate) fn with_place(path: &Path, error: &serde_json::Error) -> String {
    let why = json_reason(&error.to_string());
    match path.to_string() {
        place if place == "." => why,
        place => format!("{place}: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_no_key_twice() {
        let check = |body: &str, expect: &str| {
            let why = read_json::<serde_json::Value>(body.as_bytes()).expect_err(body);
            assert!(why.reason.contains(expect), "{body}: {}", why.reason);
        };
        check(r#"{"pattern":"a","pattern":"b"}"#, "duplicate field `pattern`");
        check(
            r#"{"definition":{"max-length":1,"max-length":2}}"#,
            "definition: duplicate field `max-length`",
        );
        check(r#"{"arguments":[{"x":{"y":1,"y":2}}]}"#, "duplicate field `y`");
    }

    #[test]
    fn a_query_is_pairs() {
        let read = |query| read_query(query).expect("it is text");
        assert_eq!(read("a=1&b=x%20y+z&c&&d="), {
            let pairs = [("a", "1"), ("b", "x y z"), ("c", ""), ("d", "")];
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
        });
        assert!(read_query("a=%ff").is_err());
        let twice = read_query("name=a&x=1&na%6de=b").expect_err("one name, two values");
        assert_eq!(twice.reason, "the parameter `name` is there twice: send it once");
        assert_eq!(read_query("family=a&family=b").expect("two families").len(), 2);
    }
}
