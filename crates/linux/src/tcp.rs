//! TCP for servers with a thread for each client.

use std::io;
pub use std::net::{TcpListener as Listener, TcpStream as Stream};
use std::time::Duration;

/// Waits for a client, whose reading and writing then wait for at most `patience`.
pub fn accept(listener: &Listener, patience: Duration) -> io::Result<Stream> {
    let (stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
