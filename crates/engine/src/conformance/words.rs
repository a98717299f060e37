//! The words of the stories: messages and settings as text.

use std::sync::Arc;

use overtake_lane::{Ending, Given, HeaderValue, Origin, Settings};

use crate::api::{Content, Filter, NewMessage, Target};

/// A message as a story writes it: `body:priority,id=x,of=producer/3/1,key=k,ttl=9,delay=9,bytes=9,h.colour=red,user=ann,in=queue,to=exchange/key`.
///
/// With `must` it is mandatory. The body is how the story calls the message; `bytes` fills it up to a length.
pub fn message(queue: &str, text: &str) -> NewMessage {
    let mut parts = text.split(',');
    let head = parts.next().unwrap_or_default();
    let (body, priority) = head.split_once(':').unwrap_or((head, ""));
    let mut message = NewMessage {
        to: Target::Queue(queue.into()),
        priority: given(priority),
        content: Content { body: body.to_owned().into(), ..Content::default() },
        ..NewMessage::default()
    };
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        say(&mut message, key, value);
    }
    message
}

fn say(message: &mut NewMessage, key: &str, value: &str) {
    match key {
        "id" => message.id = Some(value.to_owned()),
        "key" => message.key = Some(value.to_owned()),
        "of" => {
            let parts: Vec<&str> = value.split('/').collect();
            let [producer, sequence, floor] = parts[..] else {
                panic!("`{value}` is no number of a producer")
            };
            message.origin = Origin::new(producer, number(sequence), number(floor));
        }
        "ttl" => message.ttl_ms = Some(number(value)),
        "delay" => message.delay_ms = number(value),
        "bytes" => {
            let mut body = message.content.body.to_vec();
            body.resize(number(value).try_into().expect("a length"), b'.');
            message.content.body = body.into();
        }
        "in" => message.to = Target::Queue(value.into()),
        "to" => {
            let (name, key) = value.split_once('/').unwrap_or((value, ""));
            let mut keys = key.split('+').map(Arc::from);
            let routing_key = keys.next().expect("split gives one at least");
            let (name, more_keys) = (name.into(), keys.collect());
            message.to = Target::Exchange { name, routing_key, more_keys, mandatory: false };
        }
        "user" => message.content = std::mem::take(&mut message.content).with_user_id(value),
        "must" => {
            let Target::Exchange { mandatory, .. } = &mut message.to else { panic!("`must` follows `to=`") };
            *mandatory = true;
        }
        header => {
            let name =
                header.strip_prefix("h.").unwrap_or_else(|| panic!("`{header}` says nothing of a message"));
            let content = &message.content;
            let mut headers = content.headers();
            headers.insert(name.to_owned(), header_value(value));
            message.content = Content::new(content.content_type(), &headers, content.body.clone());
        }
    }
}

/// What a header holds: a whole number, true or false, or text.
pub fn header_value(text: &str) -> HeaderValue {
    match (text.parse(), text.parse()) {
        (Ok(int), _) => HeaderValue::Int(int),
        (_, Ok(bool)) => HeaderValue::Bool(bool),
        _ => HeaderValue::Text(text.to_owned()),
    }
}

/// A filter as a story writes it: `ready unprioritised priority=5 key=k h.colour=red user=ann ending=failed`.
pub fn filter(text: &str) -> Filter {
    let mut filter = Filter::default();
    for word in text.split_whitespace() {
        match word.split_once('=') {
            None if word == "unprioritised" => filter.without_priority = true,
            None => filter.status = Some(status(word)),
            Some(("priority", value)) => filter.priority = Some(given(value)),
            Some(("key", value)) => filter.key = Some(value.to_owned()),
            Some(("user", value)) => filter.user_id = Some(value.to_owned()),
            Some(("ending", value)) => filter.ending = Some(ending(value)),
            Some((header, value)) => {
                let name = header.strip_prefix("h.").unwrap_or_else(|| panic!("`{header}` filters nothing"));
                filter.headers.push((name.to_owned(), value.to_owned()));
            }
        }
    }
    filter
}

fn status(word: &str) -> overtake_lane::Status {
    use overtake_lane::Status::{Dead, Delayed, Leased, Ready};
    match word {
        "ready" => Ready,
        "delayed" => Delayed,
        "leased" => Leased,
        "dead" => Dead,
        _ => panic!("`{word}` is no status"),
    }
}

fn ending(word: &str) -> Ending {
    let all = [Ending::Completed, Ending::Failed, Ending::Timeout, Ending::Cancelled, Ending::LeaseExpired];
    all.into_iter().find(|ending| ending.word() == word).unwrap_or_else(|| panic!("nothing ends `{word}`"))
}

/// A priority as the wire would say it.
pub fn given(word: &str) -> Given {
    word.parse().expect("every word is a priority, of some scheme")
}

/// Settings that differ from the default as `change` says.
pub fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings);
    settings.validate().expect("the settings of a story are valid");
    settings
}

/// How the story calls a message: its body, without what fills it up.
pub fn name_of(content: &Content) -> String {
    String::from_utf8_lossy(&content.body).trim_end_matches('.').to_owned()
}

/// A name shared.
pub fn name(text: &str) -> Arc<str> {
    Arc::from(text)
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}
