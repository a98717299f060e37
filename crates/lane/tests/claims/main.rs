//! What the product says, sentence by sentence: each test is one claim, told as a story.

#[path = "../elsewhere/mod.rs"]
mod elsewhere;
#[path = "../story/mod.rs"]
mod story;
#[path = "../watch/mod.rs"]
mod watch;

mod at_once;
mod consumers;
mod copies;
mod copies_told;
mod dead_letters;
mod deaths;
mod ends;
mod exchanges;
mod keys;
mod limits;
mod metadata;
mod overflow;
mod pickers;
mod policies;
mod priority;
mod producers;
mod pushes;
mod queues;
mod remains;
mod remote;
mod routing;
mod ruling;
mod runs;
mod seeing;
mod settings;
mod time;
mod transactions;
mod vhosts;
mod waves;
mod work;
