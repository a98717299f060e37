//! `overtake serve`

use std::io::{self, Write};

use clap::Args;
use overtake_server::config::LogFormat;
use overtake_server::{Found, FoundStore, Ready, Stopped};

use super::Ended;
use crate::failure::Exit;
use crate::flags::ConfigArgs;
use crate::out::{HEAD, Out, RESET};
use crate::table::{count, number};

/// Run the broker.
///
/// Settings come from the file, then from variables OVERTAKE__SECTION__KEY, then from flags; the later ones win. SIGTERM and
/// SIGINT end it: requests under way are finished, the store is closed, exit code 0. A second signal ends it at once, exit
/// code 1; nothing that was confirmed is lost by that either.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overtake serve
  overtake serve --data-dir ./data --http 127.0.0.1:0 --amqp 127.0.0.1:0 --ports-file ports.json
  overtake serve --config overtake.toml --queue 'jobs={ scheme = \"named\", max_active = 10 }'
  OVERTAKE__LOG__LEVEL=debug overtake serve")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

/// Runs the broker until a signal ends it.
pub(crate) fn run(args: &ServeArgs, out: Out) -> Ended {
    let config = args.config.load()?;
    let for_people = config.log.format.value == LogFormat::Text && !out.is_quiet();
    let banner = |ready: &Ready| {
        if for_people {
            // Without a stderr there is nobody to greet.
            let _ = anstream::stderr().write_all(banner(ready).as_bytes());
        }
    };
    match overtake_server::serve(&config, &banner)? {
        Stopped::Finished => Ok(Exit::Done),
        Stopped::Forced => {
            let _ = writeln!(
                io::stderr(),
                "stopped at the second signal; the next start recovers what is on the disk"
            );
            Ok(Exit::Error)
        }
    }
}

fn banner(ready: &Ready) -> String {
    let (place, found) = match &ready.found {
        Found::Store(store) if store.shards > 1 => {
            (store.dir.display().to_string(), format!("{}, {} shards", recovered(store), store.shards))
        }
        Found::Store(store) => (store.dir.display().to_string(), recovered(store)),
        Found::Servers { primaries } => (primaries.join(", "), count(primaries.len() as u64, "server")),
    };
    let mut text = format!(
        "{HEAD}overtake {}{RESET}\n  data  {place} ({found}, {} ms)\n",
        env!("CARGO_PKG_VERSION"),
        number(ready.opened_in.as_millis().try_into().unwrap_or(u64::MAX)),
    );
    for (scheme, address) in ready.addresses.served() {
        text.push_str(&format!("  {scheme:5} {scheme}://{address}\n"));
    }
    if let Found::Store(store) = &ready.found {
        for notice in &store.notices {
            text.push_str(&format!("  {}\n", notice.text));
        }
    }
    text.push_str("Ctrl-C stops it. In another terminal: overtake health\n");
    text
}

fn recovered(store: &FoundStore) -> String {
    match (store.life, store.messages) {
        (0 | 1, _) => "new".to_owned(),
        (_, many) => format!("recovered {} in {}", count(many, "message"), count(store.queues, "queue")),
    }
}
