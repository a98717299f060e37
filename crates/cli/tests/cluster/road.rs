//! The way from one broker to the servers, which can be cut: nothing passes then, in either direction, and nobody is told. What was sent meanwhile arrives when it is mended.
//!
//! It stands in for a network of the broker's own, which takes rights that a test seldom has. The servers say of themselves their ports alone, so a broker that asks for them at another address of
//! loopback finds all of them there.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// How servers are told that whoever asks them knows at which address they are.
pub(crate) const PORTS_ALONE: [&str; 2] = ["--cluster-preferred-endpoint-type", "unknown-endpoint"];
/// Where the servers seem to be to the broker that can be cut off.
pub(crate) const OTHER_LOOPBACK: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Ways to all servers.
#[derive(Clone)]
pub(crate) struct Road(Arc<Gate>);

#[derive(Default)]
struct Gate {
    is_cut: Mutex<bool>,
    mended: Condvar,
}

impl Road {
    /// From these ports of the other address to the same ports of loopback.
    pub(crate) fn to(ports: impl IntoIterator<Item = u16>) -> Self {
        let gate = Arc::new(Gate::default());
        for port in ports {
            let listener = TcpListener::bind((OTHER_LOOPBACK, port)).expect("a port that a server has");
            let gate = Arc::clone(&gate);
            std::thread::spawn(move || {
                for near in listener.incoming().map_while(Result::ok) {
                    let gate = Arc::clone(&gate);
                    std::thread::spawn(move || gate.open(near, port));
                }
            });
        }
        Self(gate)
    }

    /// From now on nothing passes.
    pub(crate) fn cut(&self) {
        *self.0.is_cut.lock().expect("nobody panicked") = true;
    }

    /// It does again.
    pub(crate) fn mend(&self) {
        *self.0.is_cut.lock().expect("nobody panicked") = false;
        self.0.mended.notify_all();
    }
}

impl Gate {
    fn open(self: Arc<Self>, near: TcpStream, port: u16) {
        self.pass();
        let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return };
        let back = (far.try_clone().expect("a handle"), near.try_clone().expect("a handle"));
        let this = Arc::clone(&self);
        std::thread::spawn(move || this.carry(&back.0, &back.1));
        self.carry(&near, &far);
    }

    fn carry(&self, mut from: &TcpStream, mut to: &TcpStream) {
        // Batches are small; delay is what would be seen.
        let _ = to.set_nodelay(true);
        let mut piece = [0; 65_536];
        while let Ok(len @ 1..) = from.read(&mut piece) {
            self.pass();
            if to.write_all(&piece[..len]).is_err() {
                break;
            }
        }
        self.pass();
        for socket in [from, to] {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Waits until it is not cut.
    fn pass(&self) {
        let is_cut = self.is_cut.lock().expect("nobody panicked");
        drop(self.mended.wait_while(is_cut, |is_cut| *is_cut).expect("nobody panicked"));
    }
}
