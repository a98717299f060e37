//! For tests and benchmarks: a TCP port for a program that must be told which port to use.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use socket2::{Domain, Socket, Type};

/// The sockets that hold the ports.
static HELD: Mutex<Vec<Socket>> = Mutex::new(Vec::new());

/// A port of 127.0.0.1 that the system gives to nobody else until this process ends.
///
/// A program that is told to listen there can, and again after it was killed: the port is held by a socket with
/// `SO_REUSEADDR` that doesn't listen, and every server sets the same option on its own. Until one listens there,
/// connections are refused. (A port that was merely free a moment ago may be anybody's when the program asks for it.)
///
/// # Panics
/// When the system has no port left.
#[must_use]
pub fn free_port() -> u16 {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_reuse_address(true).expect("an option of every TCP socket");
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a free port");
    let address = socket.local_addr().expect("bound").as_socket().expect("an address of IPv4");
    HELD.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
    address.port()
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

    use socket2::{Domain, Socket, Type};

    use super::free_port;

    #[test]
    fn connections_are_refused_until_a_program_listens_and_after_it_ended() {
        let port = free_port();
        let refused = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect_err("nobody").kind();
        assert_eq!(refused(), ErrorKind::ConnectionRefused);
        for _ in 0..2 {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("it is free");
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
            drop(listener);
            assert_eq!(refused(), ErrorKind::ConnectionRefused);
        }
    }

    #[test]
    fn it_is_taken_for_whoever_does_not_ask_for_it_by_number() {
        let (first, second) = (free_port(), free_port());
        assert_ne!(first, second);
        let other = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let taken = other.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, first)).into());
        assert_eq!(taken.expect_err("it is held").kind(), ErrorKind::AddrInUse);
    }
}
