//! A TCP connection, plain or under TLS: bytes in and out as the socket is ready, nothing waits but for that.

use std::io::{self, Read, Write};

use bytes::{BufMut, BytesMut};
use rustls::ServerConnection;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;

/// Bytes to read at once.
const READ: usize = 64 << 10;

/// One connection.
pub(crate) struct Socket {
    stream: TcpStream,
    tls: Option<Box<ServerConnection>>,
    /// Bytes that the system took.
    sent: u64,
}

/// What reading brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    /// Perhaps some bytes.
    Some,
    /// The other side says no more.
    End,
}

/// The stream as TLS wants it.
struct Raw<'a>(&'a TcpStream);

impl Read for Raw<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(into)
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Socket {
    pub(crate) fn plain(stream: TcpStream) -> Self {
        Self { stream, tls: None, sent: 0 }
    }

    /// Under TLS, once both agree; and what the client has said by then.
    pub(crate) async fn secure(stream: TcpStream, tls: ServerConnection) -> io::Result<(Self, BytesMut)> {
        let mut socket = Self { stream, tls: Some(Box::new(tls)), sent: 0 };
        let mut said = BytesMut::new();
        loop {
            let flushed = socket.flush();
            let tls = socket.tls.as_ref().expect("it was given");
            if flushed? && !tls.is_handshaking() {
                return Ok((socket, said));
            }
            let (reads, writes) = (tls.wants_read(), tls.wants_write());
            let interest = match (reads, writes) {
                (_, false) => Interest::READABLE,
                (false, true) => Interest::WRITABLE,
                (true, true) => Interest::READABLE | Interest::WRITABLE,
            };
            if socket.stream.ready(interest).await?.is_readable() && socket.read(&mut said)? == Got::End {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// The certificate that the client showed.
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        let certificates = self.tls.as_ref()?.peer_certificates()?;
        certificates.first().map(|certificate| &**certificate)
    }

    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.stream.readable().await
    }

    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.stream.writable().await
    }

    /// Reads what has come.
    pub(crate) fn read(&mut self, into: &mut BytesMut) -> io::Result<Got> {
        let Some(tls) = &mut self.tls else {
            into.reserve(READ);
            return match self.stream.try_read_buf(into) {
                Ok(0) => Ok(Got::End),
                Ok(_) => Ok(Got::Some),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Got::Some),
                Err(error) => Err(error),
            };
        };
        loop {
            match tls.read_tls(&mut Raw(&self.stream)) {
                Ok(0) => return Ok(Got::End),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Got::Some),
                Err(error) => return Err(error),
            }
            let news = tls.process_new_packets().map_err(|error| {
                // The other side is told why, if it can be.
                let _ = tls.write_tls(&mut Raw(&self.stream));
                io::Error::new(io::ErrorKind::InvalidData, error)
            })?;
            let many = news.plaintext_bytes_to_read();
            into.reserve(many);
            io::copy(&mut tls.reader().take(many as u64), &mut into.writer())?;
            if news.peer_has_closed() {
                return Ok(Got::End);
            }
            if into.len() >= READ {
                return Ok(Got::Some);
            }
        }
    }

    /// Takes some of these bytes to write them; 0: it takes none now.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.tls {
            Some(tls) => {
                let taken = tls.writer().write(bytes)?;
                self.flush()?;
                return Ok(taken);
            }
            None => self.stream.try_write(bytes),
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Ok(written) => {
                self.sent += written as u64;
                Ok(written)
            }
            other => other,
        }
    }

    /// Writes what TLS still holds. Whether that is all.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut Raw(&self.stream)) {
                Ok(written) => self.sent += written as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Bytes that went out so far, as they go over the network.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether bytes that were taken are not written.
    pub(crate) fn holds_back(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Says that there is no more.
    pub(crate) async fn close(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            self.flush()?;
        }
        self.stream.shutdown().await
    }
}
