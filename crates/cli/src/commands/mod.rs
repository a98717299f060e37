//! One file per command: its arguments, its examples, and what it does.

pub(crate) mod audit;
pub(crate) mod cancel;
pub(crate) mod category;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod connector;
pub(crate) mod consume;
pub(crate) mod definitions;
pub(crate) mod dlq;
pub(crate) mod doctor;
pub(crate) mod drain;
pub(crate) mod exchange;
mod exchange_args;
pub(crate) mod exec;
mod exec_create;
mod exec_follow;
mod exec_submit;
pub(crate) mod health;
pub(crate) mod job;
mod lines;
pub(crate) mod man;
pub(crate) mod move_queue;
pub(crate) mod peek;
pub(crate) mod policy;
pub(crate) mod publish;
pub(crate) mod purge;
pub(crate) mod queue;
pub(crate) mod relay;
pub(crate) mod remove;
pub(crate) mod replay;
pub(crate) mod reprioritise;
pub(crate) mod routes;
pub(crate) mod schedule;
pub(crate) mod serve;
pub(crate) mod store;
mod store_repair;
mod store_restore;
mod store_snapshot;
mod store_stats;
mod store_target;
pub(crate) mod subscribe;
pub(crate) mod token;
pub(crate) mod top;
pub(crate) mod user;
pub(crate) mod vhost;
pub(crate) mod watch;
pub(crate) mod work;

use std::path::PathBuf;
use std::pin::Pin;

use crate::args::{Cli, Command, Global};
use crate::client::Client;
use crate::failure::{Exit, Failure};
use crate::out::Out;
use routes::RoutesCommand;

/// How a command ended.
pub(crate) type Ended = Result<Exit, Failure>;

/// A broker to ask, and how to print what it says.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) out: Out,
    /// Whom to believe that they are others, in place of the system's authorities.
    pub(crate) ca_file: Option<PathBuf>,
}

/// Runs what was asked for.
pub(crate) fn run(cli: Cli) -> Ended {
    let Cli { global, command } = cli;
    let out = Out::new(&global);
    match command {
        Command::Serve(args) => serve::run(&args, out),
        Command::Config(command) => config::run(&command, out),
        Command::Store(command) => store::run(&command, &global, out),
        Command::Doctor(args) => doctor::run(&args, &global, out),
        Command::Relay(args) => relay::run(&args, out),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args, out),
        Command::Queue(command) => ask(&global, async |session| queue::run(&command, session).await),
        Command::Publish(args) => ask(&global, async |session| publish::run(&args, session).await),
        Command::Consume(args) => ask(&global, async |session| consume::run(&args, session).await),
        Command::Work(args) => ask(&global, async |session| work::run(&args, session).await),
        Command::Subscribe(args) => ask(&global, async |session| subscribe::run(&args, session).await),
        Command::Category(command) => ask(&global, async |session| category::run(&command, session).await),
        Command::Dlq(command) => ask(&global, async |session| dlq::run(&command, session).await),
        Command::Peek(args) => ask(&global, async |session| peek::run(&args, session).await),
        Command::Top(args) => ask(&global, async |session| top::run(&args, session).await),
        Command::Watch(args) => ask(&global, async |session| watch::run(&args, session).await),
        Command::Reprioritise(args) => ask(&global, async |session| reprioritise::run(&args, session).await),
        Command::Remove(args) => ask(&global, async |session| remove::run(&args, session).await),
        Command::Cancel(args) => ask(&global, async |session| cancel::run(&args, session).await),
        Command::Purge(args) => ask(&global, async |session| purge::run(&args, session).await),
        Command::Move(args) => ask(&global, async |session| move_queue::run(&args, &global, session).await),
        Command::Replay(args) => ask(&global, async |session| replay::run(&args, session).await),
        Command::Exec(args) => ask(&global, async |session| exec::run(&args, session).await),
        Command::Exchange(command) => ask(&global, async |session| exchange::run(&command, session).await),
        Command::Routes(RoutesCommand::Fmt { file }) => routes::fmt(&file, out),
        Command::Routes(command) => ask(&global, async |session| routes::run(&command, session).await),
        Command::Endpoint(command) => {
            ask(&global, async |session| connector::endpoint(&command, session).await)
        }
        Command::Source(command) => ask(&global, async |session| connector::source(&command, session).await),
        Command::Drain(args) => ask(&global, async |session| drain::run(&args, session).await),
        Command::User(command) => ask(&global, async |session| user::run(&command, session).await),
        Command::Vhost(command) => ask(&global, async |session| vhost::run(&command, session).await),
        Command::Job(command) => ask(&global, async |session| job::run(&command, session).await),
        Command::Schedule(command) => ask(&global, async |session| schedule::run(&command, session).await),
        Command::Policy(command) => ask(&global, async |session| policy::run(&command, session).await),
        Command::Definitions(command) => {
            ask(&global, async |session| definitions::run(&command, &global, session).await)
        }
        Command::Token(command) => ask(&global, async |session| token::run(&command, session).await),
        Command::Whoami(args) => ask(&global, async |session| audit::whoami(&args, session).await),
        Command::Audit(args) => ask(&global, async |session| audit::run(&args, session).await),
        Command::Cluster(command) => ask(&global, async |session| cluster::run(&command, session).await),
        Command::Health(args) => ask(&global, async |session| health::run(&args, session).await),
    }
}

/// Runs a command that talks to a broker.
fn ask(global: &Global, command: impl AsyncFnOnce(&Session) -> Ended) -> Ended {
    let session =
        Session { client: Client::new(global)?, out: Out::new(global), ca_file: global.ca_file.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Boxed, so that the runtime's loop is compiled once and not for each command.
    let running: Pin<Box<dyn Future<Output = Ended> + '_>> = Box::pin(command(&session));
    let ended = runtime.block_on(running);
    // A thread that still reads stdin is not waited for.
    runtime.shutdown_background();
    ended
}
