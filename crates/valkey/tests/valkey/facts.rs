//! What the servers say of themselves, and what that is worth.

use overtake_peer::Vault;
use overtake_valkey::cluster::{Durability, Holds, Weight, facts};

use crate::story::{LIBRARY, connect};
use crate::world::{Program, World, until};

#[tokio::test]
async fn a_cluster_says_what_it_promises() {
    for program in Program::all() {
        let mut world = World::cluster(program, 1, &["--appendfsync", "always", "--maxmemory", "1gb"]).await;
        let cluster = connect(world.nodes()).await;
        let found = cluster.facts().await;
        assert_eq!((found.nodes.len(), found.is_whole), (6, true));
        let name = format!("{program:?} ");
        for node in &found.nodes {
            assert!(node.product.starts_with(&name), "{node:?}");
            assert_eq!(node.appendfsync.as_deref(), Some("always"));
            assert_eq!(
                (node.maxmemory, node.maxmemory_policy.as_deref()),
                (Some(1 << 30), Some("noeviction"))
            );
            assert_eq!(node.cluster_node_timeout_ms, Some(30_000));
            assert_eq!((node.is_primary, node.replicas.len()), (node.slots > 0, usize::from(node.slots > 0)));
            assert_eq!(node.library_version, Some(1), "a replica has it from its primary: {node:?}");
            assert_eq!((node.is_cluster_well, &*node.rights_missing), (Some(true), &[][..]));
        }
        let weights = |replicas_acked| -> Vec<_> {
            let findings = found.judge(Durability { replicas_acked, is_fsync_acked: false });
            findings.into_iter().map(|finding| finding.weight).collect()
        };
        assert!(weights(1).iter().all(|weight| *weight == Weight::Fine));
        assert_eq!((weights(0)[0], weights(2)[0]), (Weight::Weak, Weight::Wrong));
        let holds = |replicas_acked| {
            let durability = Durability { replicas_acked, is_fsync_acked: false };
            found.promises(durability).map(|promise| promise.holds)
        };
        assert_eq!(holds(1), [Holds::Yes; 4]);
        assert_eq!(holds(0), [Holds::Yes, Holds::Yes, Holds::No, Holds::Yes]);
        world.ask(0, "CONFIG SET maxmemory-policy allkeys-lru").await;
        world.servers[4].kill();
        let nodes = world.nodes();
        until(async || {
            facts(&nodes, Vault::ANY, LIBRARY)
                .await
                .is_ok_and(|found| found.nodes.iter().any(|node| node.trouble.is_some()))
        })
        .await;
        let found = facts(&nodes, Vault::ANY, LIBRARY).await.expect("others answer");
        let said: Vec<_> = found.judge(Durability::default()).iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|text| text.contains("maxmemory-policy noeviction")), "{said:#?}");
        let gone = world.servers[4].port.to_string();
        assert!(
            said.iter().any(|text| text.contains(&gone) && text.contains("does not answer")),
            "{said:#?}"
        );
    }
}
