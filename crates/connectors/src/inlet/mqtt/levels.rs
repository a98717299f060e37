//! The meaning of the levels of a topic: `devices/{device}/messages/{path}`.

use crate::inlet::Parts;

/// A topic, level by level, some of which say something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Levels(Vec<Level>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Level {
    Text(String),
    Device,
    Module,
    /// All levels from here on.
    Path,
}

impl Levels {
    /// # Errors
    /// The flaw, as a phrase.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let levels: Vec<Level> = text.split('/').map(Level::parse).collect::<Result<_, _>>()?;
        let place = |wanted: Level| levels.iter().filter(|level| **level == wanted).count();
        if [Level::Device, Level::Module, Level::Path].into_iter().any(|wanted| place(wanted) > 1) {
            return Err(format!("`template`: `{text}` names a part twice"));
        }
        if levels.iter().rev().skip(1).any(|level| *level == Level::Path) {
            return Err(format!(
                "`template`: {{path}} must be the last level of `{text}`: it is all that follows"
            ));
        }
        Ok(Self(levels))
    }

    /// Whether it says which device published, which module, and what a message is about.
    pub(super) fn names(&self) -> [bool; 3] {
        [Level::Device, Level::Module, Level::Path].map(|wanted| self.0.contains(&wanted))
    }

    /// The named parts of a topic.
    ///
    /// # Errors
    /// The topic does not fit, as a phrase.
    pub(super) fn read(&self, topic: &str) -> Result<Parts, String> {
        let mut parts = Parts::default();
        let mut rest = Some(topic);
        let not = || format!("the topic `{topic}` does not fit `from.mqtt.template`");
        for level in &self.0 {
            let here = rest.ok_or_else(not)?;
            let (one, behind) =
                here.split_once('/').map_or((here, None), |(one, behind)| (one, Some(behind)));
            rest = behind;
            match level {
                Level::Text(text) if text == one => {}
                Level::Device if !one.is_empty() => parts.device = Some(one.to_owned()),
                Level::Module if !one.is_empty() => parts.module = Some(one.to_owned()),
                Level::Path if !here.is_empty() => (parts.path, rest) = (Some(here.to_owned()), None),
                _ => return Err(not()),
            }
        }
        if rest.is_none() { Ok(parts) } else { Err(not()) }
    }
}

impl Level {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "{device}" => Ok(Self::Device),
            "{module}" => Ok(Self::Module),
            "{path}" => Ok(Self::Path),
            _ if text.contains(['{', '}', '+', '#']) => Err(format!(
                "`template`: `{text}` is none of {{device}}, {{module}} and {{path}}, each a level of its own"
            )),
            _ => Ok(Self::Text(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, topic: &str, expect: &str) {
        let said = Levels::parse(template).and_then(|levels| levels.read(topic));
        let part = |part: Option<String>| part.unwrap_or_else(|| "-".to_owned());
        let said = said.map(|Parts { device, module, path }| [device, module, path].map(part).join(" "));
        assert_eq!(said.unwrap_or_else(|why| why), expect, "{template} {topic}");
    }

    #[test]
    fn a_topic_says_who_published_and_what_it_is_about() {
        check("devices/{device}/messages/{path}", "devices/d7/messages/a/b", "d7 - a/b");
        check("{device}/{module}/out/{path}", "edge/cam/out/alerts", "edge cam alerts");
        check("site/{path}", "site//", "- - /");
        check("v1/{device}", "v1/d7", "d7 - -");
        for topic in [
            "devices/d7/messages",
            "devices//messages/a",
            "devices/d7/events/a",
            "devices/d7/messages/",
            "x",
            "",
        ] {
            let not = format!("the topic `{topic}` does not fit `from.mqtt.template`");
            check("devices/{device}/messages/{path}", topic, &not);
        }
        check("v1/{device}", "v1/d7/more", "the topic `v1/d7/more` does not fit `from.mqtt.template`");
    }

    #[test]
    fn what_is_no_template_is_said() {
        let why = |text: &str| Levels::parse(text).expect_err(text);
        assert!(why("a/{path}/b").contains("must be the last level"));
        assert!(why("a/{device}/{device}").contains("twice"));
        for text in ["a/{color}", "a/x{device}", "a/+/b", "a/{device"] {
            assert!(why(text).contains("is none of {device}, {module} and {path}"), "{text}");
        }
    }
}
