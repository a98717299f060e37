//! Reading one journal file, frame by frame.
//!
//! A walk decides nothing: it says what stands where, and finds the next right frame when asked. What that means is for
//! the survey and the decision table.

use crate::decide::Sight;
use crate::disk::DiskFile;
use crate::error::StoreError;
use crate::file::{FileHeader, HEADER_LEN};
use crate::frame::{ALIGN, Commit, HEAD_LEN, Head, Kind, Seed};
use crate::window::Window;

/// What stands at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Commit {
        at: u64,
        commit: Commit,
        crc: u32,
    },
    /// `len` bytes of payload.
    Record {
        at: u64,
        len: usize,
    },
    Born,
    Seal,
    /// No frame; the next one cannot begin before `next`.
    Invalid {
        at: u64,
        next: u64,
        sight: Sight,
    },
}

/// A right frame.
struct Frame {
    head: Head,
    commit: Option<(Commit, u32)>,
}

pub(crate) struct Walk<F> {
    window: Window<F>,
    header: FileHeader,
    salt: u32,
    life: u32,
    at: u64,
}

impl<F: DiskFile> Walk<F> {
    /// `file` may be shorter than the header says.
    pub(crate) fn new(file: F, header: FileHeader, file_len: u64) -> Self {
        let len = file_len.min(header.segment_bytes);
        Self {
            window: Window::new(file, header.name(), len),
            header,
            salt: header.salt(),
            // The first commit of a file is of the life that prepared it: what a life did not use, the next one makes a spare.
            life: header.life,
            at: HEADER_LEN,
        }
    }

    /// The next frame, or what is there instead; the walk does not move past what is invalid.
    pub(crate) fn step(&mut self) -> Result<Step, StoreError> {
        let at = self.at;
        let frame = match self.frame_at(at)? {
            Ok(frame) => frame,
            Err((sight, next)) => return Ok(Step::Invalid { at, next, sight }),
        };
        self.at = at + frame.head.frame_len();
        if let Some((commit, crc)) = frame.commit {
            self.life = commit.life;
            return Ok(Step::Commit { at, commit, crc });
        }
        Ok(match frame.head.kind {
            Kind::Record => Step::Record { at, len: frame.head.len },
            Kind::Born => Step::Born,
            Kind::Seal | Kind::Commit => Step::Seal,
        })
    }

    /// Moves to the first right frame at or after `from`; false, and at the end, when there is none.
    pub(crate) fn resync(&mut self, from: u64) -> Result<bool, StoreError> {
        let mut at = from;
        while at + HEAD_LEN as u64 <= self.window.len() {
            if self.frame_at(at)?.is_ok() {
                self.at = at;
                return Ok(true);
            }
            at += ALIGN as u64;
        }
        // A file cut inside its header ends before its first frame.
        self.at = self.window.len().max(self.at);
        Ok(false)
    }

    /// Calls `found` with every right commit at or after `from`, whatever lies between.
    pub(crate) fn each_commit(&mut self, from: u64, mut found: impl FnMut(Commit)) -> Result<(), StoreError> {
        let mut at = from;
        while at + HEAD_LEN as u64 <= self.window.len() {
            // What cannot be read is none.
            if readable(self.eight(at))?.is_some_and(Head::may_be_commit)
                && let Ok(Frame { commit: Some((commit, _)), .. }) = self.frame_at(at)?
            {
                found(commit);
            }
            at += ALIGN as u64;
        }
        Ok(())
    }

    /// The payload of the record that [`Walk::step`] just found.
    pub(crate) fn payload(&mut self, at: u64, len: usize) -> Result<&[u8], StoreError> {
        self.window.get(at + HEAD_LEN as u64, len as u64)
    }

    /// Where the next step looks.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    pub(crate) fn header(&self) -> &FileHeader {
        &self.header
    }

    fn eight(&mut self, at: u64) -> Result<[u8; HEAD_LEN], StoreError> {
        let bytes = self.window.get(at, HEAD_LEN as u64)?;
        Ok(bytes.try_into().expect("eight bytes"))
    }

    /// The frame at a place, or what is wrong there and how much further the next one begins at the soonest.
    fn frame_at(&mut self, at: u64) -> Result<Result<Frame, (Sight, u64)>, StoreError> {
        let end = self.window.len();
        if at + HEAD_LEN as u64 > end {
            return Ok(Err((Sight::NoSeal, end.max(at))));
        }
        let seed = Seed { salt: self.salt, life: self.life, lsn: self.header.lsn_at(at) };
        let next = at + ALIGN as u64;
        let Some(eight) = readable(self.eight(at))? else { return Ok(Err((Sight::Unreadable, next))) };
        let head = match Head::parse(seed, eight) {
            Ok(head) => head,
            Err(sight) => return Ok(Err((sight, next))),
        };
        if at + head.frame_len() > end {
            return Ok(Err((Sight::NoSeal, next)));
        }
        let life = self.life;
        let Some(frame) = readable(self.window.get(at, head.frame_len()))? else {
            return Ok(Err((Sight::Unreadable, next)));
        };
        let payload = match head.payload(frame) {
            Ok(payload) => payload,
            Err(sight) => return Ok(Err((sight, at + head.frame_len()))),
        };
        if head.kind != Kind::Commit {
            return Ok(Ok(Frame { head, commit: None }));
        }
        Ok(match Commit::decode(payload, seed.lsn) {
            Some(commit) if commit.life >= life => {
                let crc = head.payload_crc(payload);
                Ok(Frame { head, commit: Some((commit, crc)) })
            }
            Some(_) => Err((Sight::Unchained, next)),
            None => Err((Sight::Garbage, next)),
        })
    }
}

/// `None`: the disk cannot read it.
fn readable<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Err(StoreError::Corrupt { what: Sight::Unreadable, .. }) => Ok(None),
        read => read.map(Some),
    }
}
