//! Class tx (1.9): what is published and acknowledged on a channel happens together.

class! { 90 "tx";
    /// From now on there is a transaction on this channel.
    10 "select" Select {}

    /// There is.
    11 "select-ok" SelectOk {}

    /// Let it happen.
    20 "commit" Commit {}

    /// It happened.
    21 "commit-ok" CommitOk {}

    /// Forget it.
    30 "rollback" Rollback {}

    /// It is forgotten.
    31 "rollback-ok" RollbackOk {}
}
