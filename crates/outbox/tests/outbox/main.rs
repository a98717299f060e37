//! What makes a database's outbox one, for each of the three; and the relay, with sinks that fail.

mod claims;
mod plans;
mod relaying;
mod servers;
mod sinks;
#[cfg(feature = "redis")]
mod streams;
mod tables;
mod world;

/// Each claim, for each database.
macro_rules! conformance {
    ($module:ident: $($claim:ident)*) => {
        conformance!(@ postgres $module $($claim)*);
        conformance!(@ mysql $module $($claim)*);
        conformance!(@ sqlite $module $($claim)*);
    };
    (@ $database:ident $module:ident $($claim:ident)*) => {
        mod $database {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $claim() {
                    if let Some(world) = crate::world::World::$database().await {
                        super::$claim(world).await;
                    }
                }
            )*
        }
    };
}
pub(crate) use conformance;
