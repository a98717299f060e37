//! A link between two machines that carries so many bytes a second, and is down when it is told to.
//!
//! It waits only for what its rate asks of it, and no longer than until it is cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Carried at once, bytes.
const PIECE: usize = 2_048;

/// A link.
pub struct Link {
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    bytes_per_second: u32,
    open: Mutex<Open>,
    changed: Condvar,
}

#[derive(Default)]
struct Open {
    to: String,
    is_cut: bool,
    /// What comes back is lost.
    is_deaf: bool,
    sockets: Vec<TcpStream>,
    carried: u64,
}

impl Link {
    /// To an address, with a rate for what goes there; what comes back is not slowed.
    pub fn to(address: &str, bytes_per_second: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let open = Open { to: address.to_owned(), ..Open::default() };
        let (open, changed) = (Mutex::new(open), Condvar::new());
        let state = Arc::new(State { bytes_per_second, open, changed });
        let address = listener.local_addr().expect("an address");
        let carrying = Arc::clone(&state);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                carrying.carry(near);
            }
        });
        Self { address, state }
    }

    /// Nothing passes any more, and who tries is sent away.
    pub fn cut(&self) {
        let mut open = self.state.open.lock().expect("nobody panicked");
        open.is_cut = true;
        for socket in open.sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.state.changed.notify_all();
    }

    /// What is sent arrives, and no answer comes back.
    pub fn deafen(&self) {
        self.state.open.lock().expect("nobody panicked").is_deaf = true;
    }

    /// Whoever it leads to is at another address now.
    pub fn leads_to(&self, address: &str) {
        self.state.open.lock().expect("nobody panicked").to = address.to_owned();
    }

    /// It is there again.
    pub fn mend(&self) {
        let mut open = self.state.open.lock().expect("nobody panicked");
        (open.is_cut, open.is_deaf) = (false, false);
    }

    /// Waits until so many bytes have gone there in all.
    pub fn until_carried(&self, bytes: u64) {
        let open = self.state.open.lock().expect("nobody panicked");
        let waited =
            self.state.changed.wait_timeout_while(open, super::PATIENCE, |open| open.carried < bytes);
        let (open, timeout) = waited.expect("nobody panicked");
        assert!(!timeout.timed_out(), "{bytes} bytes go over the link: {}", open.carried);
    }
}

impl State {
    fn carry(self: &Arc<Self>, near: TcpStream) {
        let mut open = self.open.lock().expect("nobody panicked");
        let far = if open.is_cut { None } else { TcpStream::connect(&open.to).ok() };
        let Some(far) = far else { return };
        for socket in [&near, &far] {
            open.sockets.push(socket.try_clone().expect("a handle"));
        }
        let back = (far.try_clone().expect("a handle"), near.try_clone().expect("a handle"));
        let this = Arc::clone(self);
        std::thread::spawn(move || this.back(&back.0, &back.1));
        let this = Arc::clone(self);
        std::thread::spawn(move || this.slowly(&near, &far));
    }

    fn slowly(&self, mut near: &TcpStream, mut far: &TcpStream) {
        let (mut piece, mut free) = ([0; PIECE], Instant::now());
        while let Ok(len) = near.read(&mut piece) {
            if len == 0 || !self.until(free) || far.write_all(&piece[..len]).is_err() {
                break;
            }
            let takes = Duration::from_secs_f64(len as f64 / f64::from(self.bytes_per_second));
            free = free.max(Instant::now()) + takes;
            self.open.lock().expect("nobody panicked").carried += len as u64;
            self.changed.notify_all();
        }
        let _ = far.shutdown(Shutdown::Both);
        let _ = near.shutdown(Shutdown::Both);
    }

    fn back(&self, mut far: &TcpStream, mut near: &TcpStream) {
        let mut piece = [0; PIECE];
        while let Ok(len @ 1..) = far.read(&mut piece) {
            let is_deaf = self.open.lock().expect("nobody panicked").is_deaf;
            if !is_deaf && near.write_all(&piece[..len]).is_err() {
                break;
            }
        }
    }

    /// Until the link is free again. False: it was cut.
    fn until(&self, free: Instant) -> bool {
        let mut open = self.open.lock().expect("nobody panicked");
        loop {
            let left = free.saturating_duration_since(Instant::now());
            if open.is_cut || left.is_zero() {
                return !open.is_cut;
            }
            open = self.changed.wait_timeout(open, left).expect("nobody panicked").0;
        }
    }
}
