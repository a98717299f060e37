//! Starts the two children of a case, kills each with signal 9 once it has said what it found, and leaves nothing behind.

use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use super::case::Case;
use super::child::{Life, Order};
use super::measure::Findings;

/// The word by which a child knows that it is one.
pub(crate) const CHILD: &str = "deep-child";

/// Both lives of a case, in a directory of its own.
pub(super) fn measure(case: Case) -> Findings {
    let dir = tempfile::tempdir().expect("a directory for the store");
    let order = |life| Order { case, life, dir: dir.path().to_owned() };
    let mut findings = obey(&order(Life::Fill));
    findings.extend(obey(&order(Life::UseAndDrain)));
    findings
}

fn obey(order: &Order) -> Findings {
    let mut child = start(order);
    let mut said = String::new();
    let stdout = child.stdout.take().expect("stdout is piped");
    BufReader::new(stdout).read_line(&mut said).expect("a pipe can be read");
    // Its directory is not removed by it: it is killed before its standard input is closed.
    child.kill().expect("it waits to be killed");
    let status = child.wait().expect("it ends");
    serde_json::from_str(&said).unwrap_or_else(|_| {
        let why = match status.signal() {
            Some(9) => "was killed, which is what happens when memory runs out".to_owned(),
            _ => format!("failed ({status})"),
        };
        panic!("{}: the process that measures {:?} {why}", order.case.label(), order.life)
    })
}

/// In a group of its own: an interrupt at the terminal ends this process, and the child then cleans up.
fn start(order: &Order) -> Child {
    let this = std::env::current_exe().expect("a running program has a path");
    let order = serde_json::to_string(order).expect("an order is plain");
    let mut command = Command::new(this);
    command.args([CHILD, &order]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    command.spawn().expect("this program starts again")
}
