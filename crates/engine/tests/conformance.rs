//! The suite on the local engine: on a directory, with tiny journal files, on a disk whose power fails, and in three shards.

mod support;

/// A real directory.
mod on_a_directory {
    use crate::support::{Directory, Running};

    async fn fixture() -> Running<Directory> {
        Running::on(Directory::new(1 << 20))
    }

    overtake_engine::conformance_tests!(fixture);
}

/// A real directory with files so small that they are sealed, given back and used again all the time, and 64 KiB of memory.
mod on_tiny_files {
    use crate::support::{Directory, Running};

    async fn fixture() -> Running<Directory> {
        Running::on(Directory::with_memory(64 << 10, 64 << 10))
    }

    overtake_engine::conformance_tests!(fixture);
}

/// A disk in memory that loses, at each crash, what was not synced.
mod through_power_cuts {
    use crate::support::{InMemory, Running};

    async fn fixture() -> Running<InMemory> {
        Running::on(InMemory::new(128 << 20))
    }

    overtake_engine::conformance_tests!(fixture);
}

/// The same, with so little memory for messages that all that may wait in a segment does.
mod out_of_memory {
    use crate::support::{InMemory, Running};

    async fn fixture() -> Running<InMemory> {
        Running::on(InMemory::new(0))
    }

    overtake_engine::conformance_tests!(fixture);
}

/// Several loops and journals, which virtual hosts are spread over, through power cuts of all.
mod in_shards {
    use crate::support::{Running, Sharded};

    async fn fixture() -> Running<Sharded> {
        Running::on(Sharded::new())
    }

    overtake_engine::conformance_tests!(fixture);
}
