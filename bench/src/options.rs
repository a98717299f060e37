//! The words after the program's name.

use crate::Plan;

pub(crate) const USAGE: &str = "\
overtake-bench [NAME…] [--long | --quick] [--only=TEXT] [--json[=FILE]]

  --long         ten times as much, and what takes long
  --quick        amqp: a tenth
  --only=TEXT    only what has this in its name
  --json         lines of JSON in place of tables
  --json=FILE    JSON in a file, as well as tables
  --peers=A,B    amqp: only these of sink, overtake, rabbitmq, beanstalkd, beanstalkd-unsynced, redis, redis-unsynced,
                 nats-unsynced
  --url=URL      amqp: the broker at amqp://[user:password@]host[:port][/vhost], in place of others', twice in turn with ours;
                 with --peers, ours only if it is named
";

/// Where JSON goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Json {
    #[default]
    Nowhere,
    Stdout,
    File(String),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) names: Vec<String>,
    pub(crate) plan: Plan,
    pub(crate) json: Json,
}

impl Options {
    /// Values follow their option after `=`, or as the next word.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn parse(
        words: impl IntoIterator<Item = String>,
        is_bench: impl Fn(&str) -> bool,
    ) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (&*word, None),
            };
            let is_value = |word: &String| !word.starts_with('-') && !is_bench(word);
            let mut value = || {
                let value = value.clone().or_else(|| words.next_if(is_value));
                value.map(|value| &*value.leak())
            };
            let needed = |value: Option<&'static str>| value.ok_or(format!("`{name}` needs a value"));
            match name {
                "--long" => options.plan.long = true,
                "--quick" => options.plan.quick = true,
                "--only" => options.plan.only = needed(value())?,
                "--peers" => options.plan.peers = needed(value())?,
                "--url" => options.plan.url = needed(value())?,
                "--json" => options.json = value().map_or(Json::Stdout, |file| Json::File(file.to_owned())),
                name if is_bench(name) => options.names.push(name.to_owned()),
                name => return Err(format!("`{name}` is no bench and no option")),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Options, String> {
        Options::parse(words.split_whitespace().map(str::to_owned), |name| name == "amqp")
    }

    #[test]
    fn a_value_follows_after_an_equals_sign_or_as_the_next_word() {
        for words in ["amqp --only=idle --json=a.json", "--json a.json amqp --only idle"] {
            let Options { names, plan, json } = parse(words).expect("right");
            assert_eq!((names, plan.only, json), (vec!["amqp".into()], "idle", Json::File("a.json".into())));
        }
        assert_eq!(parse("--json amqp").expect("right").json, Json::Stdout);
    }

    #[test]
    fn what_is_unknown_or_missing_is_said() {
        assert_eq!(parse("amqq").unwrap_err(), "`amqq` is no bench and no option");
        assert_eq!(parse("amqp --only").unwrap_err(), "`--only` needs a value");
    }
}
