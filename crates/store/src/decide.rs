//! Recovery's decision table: what was seen, whether a later commit proves that something durable stood there, and what is
//! done about it. Every branch of recovery asks this table; a test shows that it is total and prints it.
//!
//! *Proof.* The committer writes a commit only after the sync of everything before it has returned, and each commit states the
//! place up to which that was true ([`crate::frame`]). So an unreadable place below what a readable commit states held
//! bytes that were durable once: damage. An unreadable place that no commit vouches for was never confirmed: the log ends there.

use std::fmt;

/// What recovery saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sight {
    /// Zeros where a frame would begin: a preallocated file that was not written any further.
    Zeros,
    /// The head of a frame that does not belong here: an older use of a recycled file, an older life, or a damaged head.
    StaleFrame,
    /// A head that is right over content that is not.
    TornFrame,
    /// Bytes that are no frame.
    Garbage,
    /// The file ends without saying that the next one continues.
    NoSeal,
    /// A commit that is right in itself but does not follow the one before it.
    Unchained,
    /// No file of this number, though there are later ones.
    FileMissing,
    /// Neither copy of the file's header is right.
    HeaderBad,
    /// One copy of the file's header is wrong, the other is right.
    HeaderCopyBad,
    /// The header is that of another file.
    HeaderMisplaced,
    /// The header is of a newer format.
    HeaderNewer,
    /// The header is of another store.
    HeaderOtherStore,
    /// The file is shorter than its header says.
    FileShort,
    /// A file below the oldest one needed: an interrupted retire.
    BelowOldest,
    /// A file after the one in which the log ends: prepared and not used, or never confirmed.
    BeyondTail,
    /// A file that was being made.
    HalfMade,
    /// A spare.
    Spare,
    /// A segment that does not end in a footer of its own.
    FooterBad,
    /// The index of a segment does not match its checksum, or the rest of the file.
    IndexBad,
    /// A block of a segment does not match its checksum, or the index.
    BlockBad,
    /// Messages of a segment that make no sense, though their checksum is right.
    MessageBad,
    /// A table of ids that does not match its checksum, or the messages.
    IdsBad,
    /// The disk cannot read what stands here.
    Unreadable,
}

impl Sight {
    /// Every sight.
    pub const ALL: [Self; 23] = [
        Self::Zeros,
        Self::StaleFrame,
        Self::TornFrame,
        Self::Garbage,
        Self::NoSeal,
        Self::Unchained,
        Self::FileMissing,
        Self::HeaderBad,
        Self::HeaderCopyBad,
        Self::HeaderMisplaced,
        Self::HeaderNewer,
        Self::HeaderOtherStore,
        Self::FileShort,
        Self::BelowOldest,
        Self::BeyondTail,
        Self::HalfMade,
        Self::Spare,
        Self::FooterBad,
        Self::IndexBad,
        Self::BlockBad,
        Self::MessageBad,
        Self::IdsBad,
        Self::Unreadable,
    ];
}

impl fmt::Display for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zeros => "zeros where a frame should begin",
            Self::StaleFrame => "a frame that does not belong here",
            Self::TornFrame => "a frame whose content does not match its checksum",
            Self::Garbage => "bytes that are no frame",
            Self::NoSeal => "the file ends without a seal",
            Self::Unchained => "a commit that does not follow the one before it",
            Self::FileMissing => "the file is missing",
            Self::HeaderBad => "the file header does not match its checksum",
            Self::HeaderCopyBad => "one copy of the file header does not match its checksum",
            Self::HeaderMisplaced => "the header of another file",
            Self::HeaderNewer => "a header of a newer format",
            Self::HeaderOtherStore => "a header of another store",
            Self::FileShort => "the file is shorter than its header says",
            Self::BelowOldest => "a file no longer needed",
            Self::BeyondTail => "a file not yet in use",
            Self::HalfMade => "a file that was being made",
            Self::Spare => "a spare file",
            Self::FooterBad => "a segment that does not end in a footer of its own",
            Self::IndexBad => "an index that does not match its checksum or its file",
            Self::BlockBad => "a block of messages that does not match its checksum",
            Self::MessageBad => "messages that make no sense",
            Self::IdsBad => "a table of ids that does not match its checksum or the messages",
            Self::Unreadable => "the disk cannot read it",
        })
    }
}

/// Whether a readable commit states that this place was durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// One does.
    Proven,
    /// None does.
    Unproven,
}

/// What recovery does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The log ends here; whatever follows was never confirmed and is discarded.
    End,
    /// Damage: refuse to open, or skip just what cannot be read, as the caller chose.
    Damage,
    /// Refuse to open, whatever the caller chose.
    Refuse,
    /// Mention it; nothing is lost.
    Note,
    /// Make it a spare.
    Reuse,
    /// Remove it.
    Remove,
}

/// The table.
#[must_use]
pub const fn decide(sight: Sight, proof: Proof) -> Decision {
    use Proof::{Proven, Unproven};
    match (sight, proof) {
        (
            Sight::Zeros
            | Sight::StaleFrame
            | Sight::TornFrame
            | Sight::Garbage
            | Sight::NoSeal
            | Sight::Unchained
            | Sight::FileMissing,
            Unproven,
        ) => Decision::End,
        (
            Sight::Zeros
            | Sight::StaleFrame
            | Sight::TornFrame
            | Sight::Garbage
            | Sight::NoSeal
            | Sight::Unchained
            | Sight::FileMissing,
            Proven,
        ) => Decision::Damage,
        // A file gets its name after its header and its length are durable, so no crash explains these.
        // So does a segment, after all of it is. And a write that was cut short leaves bytes that the disk can read.
        (
            Sight::HeaderBad
            | Sight::HeaderMisplaced
            | Sight::FileShort
            | Sight::FooterBad
            | Sight::IndexBad
            | Sight::BlockBad
            | Sight::MessageBad
            | Sight::IdsBad
            | Sight::Unreadable,
            Proven | Unproven,
        ) => Decision::Damage,
        (Sight::HeaderNewer | Sight::HeaderOtherStore, Proven | Unproven) => Decision::Refuse,
        (Sight::HeaderCopyBad, Proven | Unproven) => Decision::Note,
        // The end of the log lies beyond everything proven; should the two ever disagree, nothing is thrown away.
        (Sight::BeyondTail, Proven) => Decision::Refuse,
        (Sight::BeyondTail, Unproven) => Decision::Reuse,
        (Sight::BelowOldest | Sight::Spare, Proven | Unproven) => Decision::Reuse,
        (Sight::HalfMade, Proven | Unproven) => Decision::Remove,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_total_and_this() {
        let rows: Vec<String> = Sight::ALL
            .iter()
            .map(|&s| format!("{s:?}: {:?} / {:?}", decide(s, Proof::Proven), decide(s, Proof::Unproven)))
            .collect();
        let expected = "\
            Zeros: Damage / End\n\
            StaleFrame: Damage / End\n\
            TornFrame: Damage / End\n\
            Garbage: Damage / End\n\
            NoSeal: Damage / End\n\
            Unchained: Damage / End\n\
            FileMissing: Damage / End\n\
            HeaderBad: Damage / Damage\n\
            HeaderCopyBad: Note / Note\n\
            HeaderMisplaced: Damage / Damage\n\
            HeaderNewer: Refuse / Refuse\n\
            HeaderOtherStore: Refuse / Refuse\n\
            FileShort: Damage / Damage\n\
            BelowOldest: Reuse / Reuse\n\
            BeyondTail: Refuse / Reuse\n\
            HalfMade: Remove / Remove\n\
            Spare: Reuse / Reuse\n\
            FooterBad: Damage / Damage\n\
            IndexBad: Damage / Damage\n\
            BlockBad: Damage / Damage\n\
            MessageBad: Damage / Damage\n\
            IdsBad: Damage / Damage\n\
            Unreadable: Damage / Damage";
        assert_eq!(rows.join("\n"), expected);
    }

    #[test]
    fn nothing_proven_is_ever_taken_for_the_end_or_reused() {
        for sight in Sight::ALL {
            let decision = decide(sight, Proof::Proven);
            assert_ne!(decision, Decision::End, "{sight:?}");
            let harmless = matches!(sight, Sight::BelowOldest | Sight::Spare | Sight::HalfMade);
            assert!(harmless || !matches!(decision, Decision::Reuse | Decision::Remove), "{sight:?}");
        }
    }

    #[test]
    fn every_sight_is_listed_once_and_described() {
        let mut all = Sight::ALL.to_vec();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), Sight::ALL.len());
        assert!(Sight::ALL.iter().all(|sight| sight.to_string().len() > 5));
    }
}
