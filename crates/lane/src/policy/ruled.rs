//! What holds for a queue: its own settings, and over them what policies say.
//!
//! Limits bound each other: the least holds. Where a choice is to be made the queue's own comes first, since whoever declared
//! it knows what it is for; but an operator has the last word on `overflow`, and a policy on `max-priority`, which is what one
//! sets it for.
//!
//! A key that cannot hold for a queue is without effect there, and its view says so. Nothing is refused for it: neither the policy, for
//! the sake of one queue among many, nor a queue that is declared later by somebody who knows nothing of policies.

use std::sync::Arc;

use super::{Definition, Policy};
use crate::partitions::PartitionMode;
use crate::priority::Scheme;
use crate::settings::{Backoff, DeadLetterTo, Order, Overflow, Settings};

/// A policy and its name.
pub(super) type Named<'a> = (&'a Arc<str>, &'a Policy);

/// What holds for a queue, and by which policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ruled {
    /// What holds.
    pub(crate) settings: Box<Settings>,
    /// What it was declared with, where that is something else.
    pub(crate) own: Option<Box<Settings>>,
    pub(crate) policy: Option<Arc<str>>,
    pub(crate) operator_policy: Option<Arc<str>>,
    /// Keys of the two that cannot have an effect here.
    pub(crate) without_effect: Vec<&'static str>,
}

impl Ruled {
    /// By no policy.
    pub(crate) fn by_none(own: Box<Settings>) -> Self {
        let (policy, operator_policy) = (None, None);
        Self { settings: own, own: None, policy, operator_policy, without_effect: Vec::new() }
    }

    pub(super) fn by(own: Box<Settings>, user: Option<Named<'_>>, operator: Option<Named<'_>>) -> Self {
        let mut ruled = Self::by_none(own);
        let mut settings = ruled.settings.clone();
        for (_, policy) in user.iter().chain(&operator) {
            limit(&mut settings, &policy.definition);
        }
        if let Some((name, policy)) = user {
            choose(&mut settings, &policy.definition, &mut ruled.without_effect);
            ruled.policy = Some(Arc::clone(name));
        }
        if let Some((name, policy)) = operator {
            settings.overflow = policy.definition.overflow.unwrap_or(settings.overflow);
            ruled.operator_policy = Some(Arc::clone(name));
        }
        if settings != ruled.settings {
            ruled.own = Some(std::mem::replace(&mut ruled.settings, settings));
        }
        ruled
    }
}

/// Limits. What is 0 in settings is none.
fn limit(settings: &mut Settings, definition: &Definition) {
    let least = |limit: &mut u64, other: Option<u64>| {
        *limit = [*limit, other.unwrap_or(0)].into_iter().filter(|limit| *limit > 0).min().unwrap_or(0);
    };
    least(&mut settings.max_length, definition.max_length);
    least(&mut settings.max_bytes, definition.max_length_bytes);
    least(&mut settings.ttl_ms, definition.message_ttl);
    least(&mut settings.expires_ms, definition.expires);
    least(&mut settings.consumer_timeout_ms, definition.consumer_timeout);
    settings.expire_at_once |= definition.message_ttl == Some(0);
    // RabbitMQ counts how often a message may come back, we how often it may go out; −1, which is none, comes to 0.
    let mut deliveries = u64::from(settings.delivery_limit);
    least(&mut deliveries, definition.delivery_limit.map(|limit| (limit + 1) as u64));
    settings.delivery_limit = deliveries as u32;
}

/// What only a user's policy says.
fn choose(settings: &mut Settings, definition: &Definition, without_effect: &mut Vec<&'static str>) {
    if settings.backoff == Backoff::default() {
        settings.backoff = definition.backoff.unwrap_or_default();
    }
    if settings.overflow == Overflow::default() {
        settings.overflow = definition.overflow.unwrap_or_default();
    }
    let is_routed = dead_letter(settings, definition);
    if !is_routed && definition.dead_letter_routing_key.is_some() {
        without_effect.push("dead-letter-routing-key");
    }
    if let Some(most) = definition.max_priority
        && !spread(settings, most)
    {
        without_effect.push("max-priority");
    }
}

/// False: dead letters do not go to an exchange.
fn dead_letter(settings: &mut Settings, definition: &Definition) -> bool {
    let Definition { dead_letter_exchange, dead_letter_routing_key, .. } = definition;
    match (&mut settings.dead_letter, dead_letter_exchange) {
        (DeadLetterTo::Keep | DeadLetterTo::Drop, Some(name)) => {
            let routing_key = dead_letter_routing_key.clone();
            settings.dead_letter = DeadLetterTo::Exchange { name: name.clone(), routing_key };
            // As with an `x-dead-letter-exchange`: whatever dies goes there.
            settings.dead_letter_expired = true;
            settings.dead_letter_evicted = true;
            true
        }
        (DeadLetterTo::Exchange { routing_key, .. }, _) => {
            if routing_key.is_none() {
                routing_key.clone_from(dead_letter_routing_key);
            }
            true
        }
        (DeadLetterTo::Keep | DeadLetterTo::Drop | DeadLetterTo::Queue(_), _) => false,
    }
}

/// Lanes for priorities from 0 to `most`. False: the queue has a scheme, lanes or bands of its own, or names lanes that would be none.
fn spread(settings: &mut Settings, most: u8) -> bool {
    let is_numbered = matches!(settings.scheme, Scheme::Max(_));
    let has_bands = settings.partitions.mode == PartitionMode::Bands;
    if !is_numbered || has_bands || matches!(settings.order, Order::Lanes(_)) {
        return false;
    }
    let scheme = std::mem::replace(&mut settings.scheme, Scheme::Max(most));
    let order = std::mem::replace(&mut settings.order, Order::Priority);
    let is_valid = settings.validate().is_ok();
    if !is_valid {
        (settings.scheme, settings.order) = (scheme, order);
    }
    is_valid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;
    use crate::policy::ApplyTo;

    fn policy(definition: &str) -> Policy {
        let definition = serde_json::from_str(&format!("{{{definition}}}")).expect(definition);
        let pattern = Pattern::new("").expect("a pattern");
        Policy { pattern, definition, priority: 0, apply_to: ApplyTo::All }
    }

    /// The settings that hold and are other ones than the queue's own, and the keys without effect.
    fn check(own: &str, user: &str, operator: &str, expect: &str) {
        let own: Settings = serde_json::from_str(&format!("{{{own}}}")).expect(own);
        let (user, operator) = (policy(user), policy(operator));
        let name = Arc::from("p");
        let ruled = Ruled::by(Box::new(own.clone()), Some((&name, &user)), Some((&name, &operator)));
        let json = |settings: &Settings| serde_json::to_value(settings).expect("settings are JSON");
        let (own, holds) = (json(&own), json(&ruled.settings));
        let holds = holds.as_object().expect("settings are an object");
        let mut seen: Vec<String> = holds
            .iter()
            .filter(|(key, value)| own.get(key) != Some(value))
            .map(|(key, value)| format!("{key}:{value}"))
            .collect();
        seen.extend(ruled.without_effect.iter().map(|key| format!("not {key}")));
        assert_eq!(seen.join(" ").replace('"', ""), expect);
    }

    #[test]
    fn the_least_limit_holds_and_none_is_not_the_least() {
        check("", r#""max-length":5"#, "", "max_length:5");
        check(r#""max_length":3"#, r#""max-length":5"#, r#""max-length":4"#, "");
        check(r#""max_length":9"#, r#""max-length":5"#, r#""max-length":4"#, "max_length:4");
        check("", "", r#""max-length-bytes":4,"expires":7"#, "expires_ms:7 max_bytes:4");
        check(r#""expires_ms":9"#, r#""expires":8"#, r#""expires":7"#, "expires_ms:7");
        check(
            r#""consumer_timeout_ms":9"#,
            r#""consumer-timeout":8"#,
            r#""max-length":1"#,
            "consumer_timeout_ms:8 max_length:1",
        );
        check(r#""consumer_timeout_ms":9"#, r#""consumer-timeout":0"#, "", "");
    }

    #[test]
    fn a_time_to_live_of_nothing_is_the_least() {
        check(r#""ttl_ms":9"#, r#""message-ttl":5"#, r#""message-ttl":7"#, "ttl_ms:5");
        check(r#""ttl_ms":9"#, r#""message-ttl":0"#, "", "expire_at_once:true");
        check(r#""expire_at_once":true"#, r#""message-ttl":5"#, "", "ttl_ms:5");
    }

    #[test]
    fn deliveries_are_one_more_than_returns() {
        check("", r#""delivery-limit":0"#, "", "delivery_limit:1");
        check(r#""delivery_limit":9"#, r#""delivery-limit":-1"#, "", "");
        check(r#""delivery_limit":9"#, r#""delivery-limit":20"#, r#""delivery-limit":2"#, "delivery_limit:3");
    }

    #[test]
    fn a_backoff_of_a_policy_holds_for_queues_without_one() {
        let policy = r#""overtake-backoff":5"#;
        check("", policy, "", "backoff:{initial_ms:5,max_ms:3600000,multiplier:2}");
        check(r#""backoff":{"initial_ms":9}"#, policy, "", "");
    }

    #[test]
    fn what_a_queue_chose_itself_comes_first_and_an_operator_last() {
        let (reject, dlx) = (r#""overflow":"reject-publish""#, r#""overflow":"reject-publish-dlx""#);
        check("", reject, "", "overflow:reject");
        check(r#""overflow":"reject_dead_letter""#, reject, "", "");
        check(r#""overflow":"reject_dead_letter""#, dlx, reject, "overflow:reject");
        check(r#""overflow":"reject""#, "", r#""overflow":"drop-head""#, "overflow:evict");
    }

    #[test]
    fn dead_letters_go_where_the_queue_says_and_else_where_the_policy_does() {
        let policy = r#""dead-letter-exchange":"x","dead-letter-routing-key":"k""#;
        let all =
            "dead_letter:{exchange:{name:x,routing_key:k}} dead_letter_evicted:true dead_letter_expired:true";
        check("", policy, "", all);
        check(r#""dead_letter":"drop""#, policy, "", all);
        check(r#""dead_letter":{"queue":"d"}"#, policy, "", "not dead-letter-routing-key");
        let own = r#""dead_letter":{"exchange":{"name":"y"}}"#;
        check(own, policy, "", "dead_letter:{exchange:{name:y,routing_key:k}}");
        let own = r#""dead_letter":{"exchange":{"name":"y","routing_key":"l"}}"#;
        check(own, policy, "", "");
        check("", r#""dead-letter-routing-key":"k""#, "", "not dead-letter-routing-key");
    }

    #[test]
    fn max_priority_is_for_queues_that_have_numbers_and_no_lanes_of_their_own() {
        let policy = r#""max-priority":7"#;
        check(r#""scheme":"max-255","order":"fifo""#, policy, "", "order:priority scheme:max-7");
        check(r#""scheme":"max-9""#, policy, "", "scheme:max-7");
        check(r#""scheme":"max-5""#, policy, "", "scheme:max-7");
        for own in [
            r#""scheme":"ten-level""#,
            r#""scheme":"signed","order":"fifo""#,
            r#""scheme":"max-9","order":{"lanes":[{"name":"a","from":4},{"name":"b"}]}"#,
            r#""scheme":"max-9","partitions":{"mode":"bands"}"#,
            r#""scheme":"max-9","lanes":{"8":{"max_active":1}}"#,
            r#""scheme":"max-9","order":"fifo","lanes":{"fifo":{"max_active":1}}"#,
        ] {
            check(own, policy, "", "not max-priority");
        }
    }
}
