//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{
    audit, cancel, category, cluster, completions, config, connector, consume, definitions, dlq, doctor,
    drain, exchange, exec, health, job, man, move_queue, peek, policy, publish, purge, queue, relay, remove,
    replay, reprioritise, routes, schedule, serve, store, subscribe, token, top, user, vhost, watch, work,
};
use crate::failure::EXIT_CODES;
use crate::login::Login;

/// The virtual host that is always there.
pub(crate) const DEFAULT_VHOST: &str = "/";

/// A durable message broker in which urgent work overtakes bulk work.
#[derive(Debug, Parser)]
#[command(name = "overtake", version, after_help = EXIT_CODES, max_term_width = 100, propagate_version = false)]
#[command(subcommand_required = true, arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Global {
    /// The broker to talk to.
    #[arg(
        long,
        global = true,
        env = "OVERTAKE_URL",
        hide_env_values = true,
        default_value = "http://127.0.0.1:15672",
        value_name = "URL"
    )]
    pub(crate) url: String,
    /// For https: a PEM file with the authorities that may sign the broker's certificate, in place of the system's.
    #[arg(long, global = true, env = "OVERTAKE_CA_FILE", hide_env_values = true, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) login: Login,
    /// The virtual host in which queues and exchanges are meant [default: /].
    #[arg(long, global = true, env = "OVERTAKE_VHOST", hide_env_values = true, value_name = "NAME")]
    pub(crate) vhost: Option<String>,
    /// Give up on an answer after so long: 500ms, 30s, 5m, 1h30m.
    #[arg(long, global = true, default_value = "30s", value_name = "DURATION")]
    #[arg(value_parser = crate::words::more_than_0("nothing can be answered in no time: say 1ms or more"))]
    pub(crate) timeout: u64,
    /// Print JSON for programs.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print nothing but what was asked for.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

impl Global {
    /// The virtual host in which queues and exchanges are meant.
    pub(crate) fn vhost(&self) -> &str {
        self.vhost.as_deref().unwrap_or(DEFAULT_VHOST)
    }
}

/// What to do. The first sentence of each is that of its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(serve::ServeArgs),
    /// Check or show the configuration the broker would run with.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Declare, list, show and delete queues.
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    Publish(publish::PublishArgs),
    Consume(consume::ConsumeArgs),
    Work(work::WorkArgs),
    Subscribe(subscribe::SubscribeArgs),
    Peek(peek::PeekArgs),
    Top(top::TopArgs),
    Watch(watch::WatchArgs),
    Reprioritise(reprioritise::ReprioritiseArgs),
    Remove(remove::RemoveArgs),
    Cancel(cancel::CancelArgs),
    Purge(purge::PurgeArgs),
    Replay(replay::ReplayArgs),
    Move(move_queue::MoveArgs),
    /// List, show and cancel jobs: changes of many messages, which go on between other requests.
    #[command(subcommand)]
    Job(job::JobCommand),
    /// Submit work to be executed, see how it goes, and steer it.
    Exec(exec::ExecArgs),
    /// Publish messages by a cron line: make, list, change and delete schedules.
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    /// Declare, list, bind and delete exchanges, and publish to them.
    #[command(subcommand)]
    Exchange(exchange::ExchangeCommand),
    /// Make, list and delete categories of streams, each with groups of consumers and two lanes.
    #[command(subcommand)]
    Category(category::CategoryCommand),
    Relay(relay::RelayArgs),
    /// Look at dead letters of categories, put them back, or remove them.
    #[command(subcommand)]
    Dlq(dlq::DlqCommand),
    /// Set, compare, list and try routes: who gets a copy of a message, how urgently, for how long.
    #[command(subcommand)]
    Routes(routes::RoutesCommand),
    /// Send what waits in queues to other systems: make, list, test, pause and delete endpoints.
    #[command(subcommand)]
    Endpoint(connector::EndpointCommand),
    /// Take in what other systems have: make, list, test, pause and delete sources.
    #[command(subcommand)]
    Source(connector::SourceCommand),
    /// Look at a store on disk, copy it and restore it.
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Make, list, change and delete users, and give them rights.
    #[command(subcommand)]
    User(user::UserCommand),
    /// Make, list, change and delete virtual hosts.
    #[command(subcommand)]
    Vhost(vhost::VhostCommand),
    /// Set, list and remove policies.
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Write all that is declared into a file, and back.
    #[command(subcommand)]
    Definitions(definitions::DefinitionsCommand),
    /// Make, list and revoke tokens.
    #[command(subcommand)]
    Token(token::TokenCommand),
    Whoami(audit::WhoamiArgs),
    Audit(audit::AuditArgs),
    Health(health::HealthArgs),
    /// Show the brokers and servers of a broker on Redis or Valkey, and see to queues whose definition was lost.
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    Doctor(doctor::DoctorArgs),
    Drain(drain::DrainArgs),
    /// Print the completions of a shell.
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// Reads a command line.
///
/// # Errors
/// The mistake in the command line, or the help that it asks for.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut matches = with_negative_numbers(Cli::command()).try_get_matches_from(words)?;
    Cli::from_arg_matches_mut(&mut matches)
}

/// The command with arguments that take `-1` and `-5s` as a value, which is refused as one then, and not as an argument that nobody knows.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let takes = |argument: &Arg, name| {
        argument.get_value_names().is_some_and(|names| names.iter().any(|other| other.as_str() == name))
    };
    let command = command.mut_args(|argument| {
        if !argument.get_action().takes_values() {
            argument
        } else if takes(&argument, "DURATION")
            && argument.get_num_args().is_none_or(|values| values.min_values() > 0)
        {
            // An option that may come without a value leaves the next option alone.
            argument.allow_hyphen_values(true)
        } else if !argument.is_positional() || takes(&argument, "N") {
            argument.allow_negative_numbers(true)
        } else {
            argument
        }
    });
    command.mut_subcommands(with_negative_numbers)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Command;
    use clap::error::{ContextKind, ErrorKind};

    use super::*;

    fn check(command: &Command, words: &str, globals: &BTreeSet<&str>, found: &mut Vec<String>) {
        for command in command.get_subcommands() {
            let words = format!("{words} {}", command.get_name());
            let own = command.get_arguments().map(|argument| argument.get_id().as_str());
            found.extend(own.filter(|id| globals.contains(id)).map(|id| format!("{words}: {id}")));
            check(command, &words, globals, found);
        }
    }

    /// clap takes two arguments with one id as one: a command's own value and the global one would overwrite each other.
    #[test]
    fn no_argument_of_a_command_has_the_id_of_a_global_one() {
        let cli = Cli::command();
        let globals = cli.get_arguments().filter(|argument| argument.is_global_set());
        let globals: BTreeSet<_> = globals.map(|argument| argument.get_id().as_str()).collect();
        assert!(globals.contains("vhost") && globals.contains("json"), "{globals:?}");
        let mut found = Vec::new();
        check(&cli, "overtake", &globals, &mut found);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn a_duration_that_cannot_be_0_says_what_to_write_instead() {
        for (words, why) in [
            (&["publish", "q", "b", "--ttl", "0"][..], "or leave --ttl out for the queue's time to live"),
            (&["exec", "submit", "b", "--ttl", "0s"], "or leave --ttl out for the queue's time to live"),
            (
                &["exchange", "publish", "e", "b", "--ttl", "0"],
                "or leave --ttl out for the queue's time to live",
            ),
            (&["token", "make", "--expires-in", "0"], "or leave --expires-in out"),
            (&["watch", "q", "--warn-age", "0"], "every message has waited for 0"),
            (&["work", "q", "--lease", "0", "--", "true"], "a lease lasts 1s or longer"),
            (&["top", "--interval", "0"], "ask every 200ms or less often"),
            (&["health", "--timeout", "0"], "nothing can be answered in no time"),
        ] {
            let words = [&["overtake"], words].concat();
            let said = parse(words.iter().map(Into::into)).expect_err("0 is refused").to_string();
            assert!(said.contains("invalid value '0") && said.contains(why), "{words:?}: {said}");
        }
        for words in [
            &["publish", "q", "b", "--delay", "0"][..],
            &["consume", "q", "--wait", "0", "--visibility-timeout", "0"],
            &["consume", "q", "--nack", "--delay", "0"],
            &["work", "q", "--grace", "0", "--delay", "0", "--", "true"],
            &["exec", "create", "--history", "0", "--backoff", "0", "--run-timeout", "0"],
            &["drain", "--within", "0"],
        ] {
            let words = [&["overtake"], words].concat();
            parse(words.iter().map(Into::into)).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        }
    }

    /// Gives every option of every command a value that it cannot have.
    fn misuse(command: &Command, words: &[&str], found: &mut Vec<String>) {
        for command in command.get_subcommands() {
            let words = [words, &[command.get_name()]].concat();
            for argument in command.get_arguments() {
                // `--switch VALUE` is no value of the switch, which takes `--switch=VALUE`.
                if argument.is_require_equals_set() {
                    continue;
                }
                let (Some(long), true) = (argument.get_long(), argument.get_action().takes_values()) else {
                    continue;
                };
                for wrong in ["?!", "-7", "-5s", "99999999999999999999999"] {
                    let option = format!("--{long}");
                    let given = [&words[..], &[&*option, wrong]].concat();
                    let Err(error) = parse(given.iter().map(Into::into)) else { continue };
                    let said = error.to_string();
                    let about = |kind| error.get(kind).is_some_and(|said| said.to_string().contains(wrong));
                    if !about(ContextKind::InvalidValue) && !about(ContextKind::InvalidArg) {
                        continue;
                    }
                    assert_ne!(error.kind(), ErrorKind::UnknownArgument, "{given:?}: {said}");
                    assert!(said.contains(&format!("'{wrong}' for '--{long}")), "{given:?}: {said}");
                    for vague in ["invalid digit", "too large to fit", "is not in"] {
                        assert!(!said.contains(vague), "{given:?}: {said}");
                    }
                    found.push(format!("{} --{long}", words[1..].join(" ")));
                }
            }
            misuse(command, &words, found);
        }
    }

    #[test]
    fn a_value_that_an_option_cannot_have_is_named_with_it() {
        let mut found = Vec::new();
        misuse(&Cli::command(), &["overtake"], &mut found);
        for one in [
            "purge --expect",
            "publish --ttl",
            "remove --status",
            "work --slots",
            "vhost put --max-queues",
            "policy set --priority",
        ] {
            assert!(found.iter().any(|found| found == one), "{one}: {found:?}");
        }
    }
}
