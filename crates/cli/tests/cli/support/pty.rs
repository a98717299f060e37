//! A program on a terminal of its own: what it draws, keys for it, and what is left of it.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, sync_channel};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::PATIENCE;

/// Pieces of output that may wait to be read.
const PIECES_MAX: usize = 100_000;

/// Such a program.
pub struct Pty {
    child: Child,
    /// What a person types, and sees.
    master: File,
    /// Where the program sits; kept open, so that what it leaves behind can be looked at.
    slave: File,
    pieces: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Pty {
    /// Starts it on a terminal of this size.
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("ours");
        unlockpt(&master).expect("ours");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let slave = open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("it opens");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).expect("a size");
        let (master, slave) = (File::from(master), File::from(slave));
        let end = || slave.try_clone().expect("another descriptor");
        command.env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().expect("the binary runs");
        let (send, pieces) = sync_channel(PIECES_MAX);
        let mut read = master.try_clone().expect("another descriptor");
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(len @ 1..) = read.read(&mut piece) {
                if send.send(piece[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, master, slave, pieces, seen: Vec::new() }
    }

    /// Waits until this is drawn.
    #[track_caller]
    pub fn await_text(&mut self, text: &str) {
        while !self.text().contains(text) {
            match self.pieces.recv_timeout(PATIENCE) {
                Ok(piece) => self.seen.extend(piece),
                Err(_) => panic!("no `{text}` in:\n{}", self.text().escape_debug()),
            }
        }
    }

    /// Types; what was drawn before is forgotten.
    pub fn press(&mut self, keys: &str) {
        self.seen.clear();
        self.master.write_all(keys.as_bytes()).expect("it reads");
    }

    /// Sends a signal; what was drawn before is forgotten.
    pub fn signal(&mut self, signal: Signal) {
        self.seen.clear();
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// All that was drawn, with whatever steers the terminal.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Its exit code; the terminal must be as a shell wants it.
    #[track_caller]
    pub fn end(mut self) -> i32 {
        let code = self.child.wait().expect("it ends").code().expect("not killed");
        // Back from the other screen, with a cursor.
        self.await_text("\u{1b}[?1049l");
        self.await_text("\u{1b}[?25h");
        let modes = tcgetattr(&self.slave).expect("a terminal").local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG), "{modes:?}");
        code
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
