//! A process that measures one life of one case, and then waits to be killed.
//!
//! It prints its findings as one line of JSON. When whoever started it is gone, it removes the directory it worked in:
//! so nothing is left on the disk however a run ends.

use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::process::exit;

use serde::{Deserialize, Serialize};

use super::case::{Case, Store};
use super::measure::Findings;
use super::overtake::Overtake;
use super::queue::MinimalQueue;
use super::work;
use crate::proc;

/// What a child is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) case: Case,
    pub(super) life: Life,
    pub(super) dir: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Life {
    Fill,
    UseAndDrain,
}

/// Does what the order says and never returns.
pub(crate) fn run(order: &str) -> ! {
    let order: Order = serde_json::from_str(order).expect("an order, written by this program");
    proc::volunteer();
    clean_up_when_alone(order.dir.clone());
    match order.case.store {
        Store::Overtake => live::<Overtake>(&order),
        #[cfg(feature = "references")]
        Store::Sqlite => live::<super::sqlite::Sqlite>(&order),
        #[cfg(feature = "references")]
        Store::Fjall => live::<super::fjall::Fjall>(&order),
    }
}

fn live<Q: MinimalQueue>(order: &Order) -> ! {
    let life = match order.life {
        Life::Fill => work::fill::<Q>,
        Life::UseAndDrain => work::use_and_drain::<Q>,
    };
    let (findings, _open) = life(order.case, &order.dir);
    say(&findings);
    loop {
        std::thread::park();
    }
}

fn say(findings: &Findings) {
    println!("{}", serde_json::to_string(findings).expect("findings are plain"));
}

/// Whoever started this holds the other end of its standard input.
fn clean_up_when_alone(dir: PathBuf) {
    std::thread::spawn(move || {
        // An error is an end as well.
        let _ = stdin().read_to_end(&mut Vec::new());
        remove(&dir);
        exit(1);
    });
}

/// The store goes on writing meanwhile, so once may not be enough.
fn remove(dir: &Path) {
    const TRIES: usize = 1_000;
    let is_gone = |_: &usize| std::fs::remove_dir_all(dir).is_ok() || !dir.exists();
    if (0..TRIES).find(is_gone).is_none() {
        eprintln!("{} could not be removed", dir.display());
    }
}
