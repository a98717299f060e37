//! Requests and answers in a few words, for the story and for the counts.

use overtake_engine::core::{Answer, Request};
use overtake_engine::{Change, LeasedMessage, NewMessage, Refused, Target};
use overtake_lane::{Command, MetadataEntry, Origin};
use overtake_routes::NamedRoute;

use crate::rng::mix;

/// The kind of a request.
pub(crate) fn kind(request: &Request) -> &'static str {
    match request {
        Request::Do(Command::DeclareVhost { .. } | Command::DeleteVhost { .. }) => "vhost",
        Request::Do(Command::DeclareQueue { .. }) => "declare",
        Request::Do(Command::DeleteQueue { .. }) => "delete",
        Request::Do(Command::DeclareExchange { .. } | Command::DeleteExchange { .. }) => "exchange",
        Request::Do(Command::Bind(_) | Command::Unbind(_)) => "bind",
        Request::Do(Command::Cancel { .. }) => "cancel",
        Request::Do(Command::Settle { .. }) => "settle",
        Request::Do(Command::Finish { .. }) => "finish",
        Request::Do(Command::FinishLate { .. }) => "finish late",
        Request::Do(Command::CancelMessages { .. }) => "want back",
        Request::Do(Command::SetMetadata { .. }) => "metadata",
        Request::Do(Command::SetPolicy { .. } | Command::RemovePolicy { .. }) => "policy",
        Request::Do(Command::Extend { .. }) => "extend",
        Request::Do(Command::Purge { .. }) => "purge",
        Request::Do(Command::EndSession { .. }) => "end session",
        Request::Do(Command::Leave { .. }) => "leave",
        Request::Do(Command::Took { .. } | Command::SetWindow { .. }) | Request::SetWindow { .. } => "window",
        Request::Do(_) => "other",
        Request::By { request, .. } => kind(request),
        Request::Get { .. } => "get",
        Request::Publish { settlements, .. } if settlements.is_empty() => "publish",
        Request::Publish { .. } => "transact",
        Request::Lease { .. } => "lease",
        Request::PublishOne(_) => "publish one",
        Request::GiveUp { .. } => "give up",
        Request::Consume { .. } => "consume",
        Request::Progress { .. } => "progress",
        Request::Change { change: Change::Cancel, .. } => "want back",
        Request::Change { change, .. } => change.name(),
        Request::CancelJob { .. } => "cancel job",
        Request::SetRoutes(_) => "routes",
        Request::Vhosts
        | Request::Vhost(_)
        | Request::Queues { .. }
        | Request::Queue(_)
        | Request::QueueNames(_)
        | Request::StillThere(_)
        | Request::Exchanges
        | Request::Exchange(_)
        | Request::Bindings(_)
        | Request::Metadata
        | Request::Policies(_)
        | Request::Routes
        | Request::Browse { .. }
        | Request::Jobs
        | Request::Job { .. }
        | Request::Message { .. } => "see",
    }
}

pub(crate) fn request(request: &Request) -> String {
    match request {
        Request::Publish { messages, settlements } => {
            let messages: Vec<String> = messages.iter().map(message).collect();
            format!("publish {}; settle {settlements:?}", messages.join(", "))
        }
        Request::By { asker, request } if asker.session.is_none() => {
            format!("at {}: {}", asker.vhost.0, self::request(request))
        }
        Request::Do(Command::SetMetadata { entries }) => {
            let entries: Vec<String> = entries.iter().map(entry).collect();
            format!("set {}", entries.join(", "))
        }
        Request::SetRoutes(set) => {
            let manifest = set.manifest();
            let routes = manifest.routes.iter().map(|route| {
                let text: String = route.route.to_string().chars().take(160).collect();
                let NamedRoute { name, priority, ttl_secs, is_fallback, .. } = route;
                format!("{name}: {text} (at {priority:?}, {ttl_secs:?} s, fallback {is_fallback})")
            });
            let routes: Vec<String> = routes.collect();
            format!("set the routes {routes:#?} and {:?} s for all", manifest.ttl_secs)
        }
        other => format!("{other:?}"),
    }
}

/// Keys and values may be long.
fn entry(MetadataEntry { key, value }: &MetadataEntry) -> String {
    let name: String = key.chars().take(8).collect();
    let value = value.as_deref().map_or("nothing".to_owned(), |value| format!("{} bytes", value.len()));
    format!("{name:?} ({}) to {value}", key.len())
}

fn message(message: &NewMessage) -> String {
    let NewMessage { to, sender: _, priority, id, origin, key, key_weight, ttl_ms, delay_ms, content } =
        message;
    let numbered = |origin: &Origin| format!(", {}#{}", origin.producer(), origin.sequence());
    let numbered = origin.as_ref().map(numbered).unwrap_or_default();
    let to = match to {
        Target::Queue(name) => name.to_string(),
        Target::Exchange { name, routing_key, more_keys, .. } => {
            let more: String = more_keys.iter().map(|key| format!("+{key}")).collect();
            format!("{name}/{routing_key}{more}")
        }
    };
    let weight = key_weight.map(|weight| format!(" of weight {weight}")).unwrap_or_default();
    let mark = content.content_type().unwrap_or("-");
    let len = content.body.len();
    format!(
        "{mark} to {to} at {priority} (id {id:?}, key {key:?}{weight}, ttl {ttl_ms:?}, delay {delay_ms}, {len} bytes{numbered})"
    )
}

pub(crate) fn leased(message: &LeasedMessage) -> String {
    let mark = message.content.content_type().unwrap_or("-");
    format!(
        "{} {mark} at {} until {:?}",
        message.receipt,
        message.message.level.0,
        message.deadline.map(|time| time.0)
    )
}

pub(crate) fn result(result: &Result<Answer, Refused>) -> String {
    match result {
        Ok(Answer::Leased(messages)) => {
            format!("leased {:?}", messages.iter().map(leased).collect::<Vec<_>>())
        }
        Ok(Answer::Got(Some(got))) => format!("got {}, {} after", leased(&got.message), got.ready),
        Ok(Answer::Copies(copies)) => {
            let copies =
                copies.iter().map(|copy| format!("{}:{} dup {}", copy.queue, copy.seq.0, copy.duplicate));
            format!("copies {}", copies.collect::<Vec<_>>().join(" "))
        }
        Ok(
            Answer::Vhosts(_)
            | Answer::Vhost(_)
            | Answer::Queues(_)
            | Answer::Queue(_)
            | Answer::Page(_)
            | Answer::Message(_)
            | Answer::Exchanges(_)
            | Answer::Exchange(_)
            | Answer::Bindings(_)
            | Answer::Metadata(_)
            | Answer::Policies(_)
            | Answer::Routes(_),
        ) => "shown".to_owned(),
        other => format!("{other:?}"),
    }
}

/// An answer as a number.
pub(crate) fn result_code(result: &Result<Answer, Refused>) -> u64 {
    match result {
        Ok(Answer::Leased(messages)) => {
            messages.iter().fold(1, |hash, message| mix(hash ^ message.receipt.lease.0))
        }
        Ok(Answer::Copies(copies)) => copies.iter().fold(2, |hash, copy| mix(hash ^ copy.seq.0)),
        Ok(Answer::Got(got)) => mix(got.as_ref().map_or(8, |got| got.message.receipt.lease.0)),
        Ok(Answer::Count(count)) => mix(*count ^ 3),
        Ok(Answer::Each(each)) => each.iter().fold(4, |hash, one| mix(hash ^ u64::from(one.is_ok()))),
        Ok(Answer::Page(page)) => page.messages.iter().fold(5, |hash, one| mix(hash ^ one.message.seq.0)),
        Ok(_) => 6,
        Err(refused) => refused.refusal.code().bytes().fold(7, |hash, byte| mix(hash ^ u64::from(byte))),
    }
}
