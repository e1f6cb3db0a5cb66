//! A peek at a client's socket, which takes no byte out of it. It sees the end of the client's side, or a
//! reset, that has arrived and is still unread.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::net::TcpStream;

/// True if a peek finds that the client has ended its side, or reset it.
pub(crate) fn has_hung_up(socket: &TcpStream) -> bool {
    let mut byte = [0_u8; 1];
    match recv(socket.as_fd(), &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, read)) => read == 0,
        Err(error) => !matches!(error, Errno::AGAIN | Errno::INTR),
    }
}
