//! What is claimed of streams, with a Redis of the test's own.

mod broken;
mod dead_letters;
mod failing;
mod lag;
mod losing;
mod partitions;
mod reading;
#[allow(dead_code, reason = "the tests of endpoints use what these do not")]
#[path = "../../../connectors/tests/connectors/servers.rs"]
mod servers;
mod sharing;
mod world;
mod writing;
