//! The protocol by which a program hosts stacks on its standard input and output.
//!
//! The simulator sends a request and waits for the answers to it, the last of which is [`Kind::Done`]; only
//! [`Kind::Forget`] has no answer. Time stands still in between. Each frame is a head of [`HEAD`] bytes and a body; numbers
//! are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0-3 | length of the body |
//! | 4 | kind, see [`Kind`] |
//! | 5 | end of the connection: 0 client, 1 server |
//! | 6 | ECN codepoint of a datagram: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE |
//! | 7 | zero |
//! | 8-11 | number of the connection |
//! | 12-15 | zero |
//! | 16-23 | value |
//!
//! In every request but [`Kind::Hello`] the value is the time in nanoseconds since the start of the run.

use std::io::{self, Read, Write};

/// The version of this protocol.
pub const VERSION: u64 = 1;
/// Length of the head of a frame.
pub const HEAD: usize = 24;
/// The longest body.
pub const LONGEST: u32 = 1 << 16;
/// The value of [`Kind::Done`] if the stack waits for a datagram.
pub const NEVER: u64 = u64::MAX;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal,)*) => {
        /// What a frame is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl Kind {
            /// Returns the kind of this number; `None` if there is none.
            pub fn of(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// Request and answer: the value is [`VERSION`]; the body of the answer is the stack's name and version.
    Hello = 1,
    /// Request: an end of a connection begins; a client begins its handshake. The body is a seed of 32 bytes, the same for both
    /// ends, from which all random numbers and keys come.
    Open = 2,
    /// Request: the body is a datagram that arrived.
    Receive = 3,
    /// Request: the time which the last answer named has come.
    Wake = 4,
    /// Request: the application has this many more bytes to send, eight bytes in the body.
    Write = 5,
    /// Request: the application has no more bytes to send.
    Finish = 6,
    /// Request: the application closes the connection, whatever is on the way.
    Close = 7,
    /// Request without an answer: nothing more will be said of this end.
    Forget = 8,
    /// Answer: the body is a datagram to be sent, of 1 to 65,000 bytes.
    Send = 16,
    /// Answer: the value is the number of bytes that further arrived in order.
    Read = 17,
    /// Answer: the value is the congestion window in bytes. The body has 17 bytes: 1 once the handshake is complete, the
    /// smoothed round trip time in nanoseconds (0 if there is none), and the number of datagrams believed lost.
    Tell = 18,
    /// Answer: the connection ended by itself; the body says why, in words such as `timed out`.
    Ended = 19,
    /// Answer: the stack is broken; the body says how. The run ends with it.
    Fail = 20,
    /// The last answer: the value is the time at which the stack wants to be woken, or [`NEVER`].
    Done = 21,
}

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// The end of the connection: 0 client, 1 server.
    pub side: u8,
    /// ECN codepoint of a datagram.
    pub ecn: u8,
    /// Number of the connection.
    pub connection: u32,
    /// The value.
    pub value: u64,
    /// The body.
    pub body: Vec<u8>,
}

/// Why a frame cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other side has closed its end between two frames.
    #[error("it closed its output")]
    Over,
    /// The other side cannot be read, or closed its end within a frame.
    #[error("its output ends within a frame ({0})")]
    Io(#[from] io::Error),
    /// The kind is none.
    #[error("it sent a frame of kind {0}, which there is not")]
    Kind(u8),
    /// The answers to one request do not end.
    #[error("it does not end its answer: {0} frames without Done")]
    Endless(usize),
    /// The body is too long.
    #[error("it sent a frame with a body of {0} bytes; at most {LONGEST} are allowed")]
    Long(u32),
}

impl Frame {
    /// Creates a frame without a body.
    pub fn new(kind: Kind, (connection, side): (u32, u8), value: u64) -> Self {
        Self { kind, side, ecn: 0, connection, value, body: Vec::new() }
    }

    /// Writes the frame.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&(self.body.len() as u32).to_le_bytes());
        head[4..7].copy_from_slice(&[self.kind as u8, self.side, self.ecn]);
        head[8..12].copy_from_slice(&self.connection.to_le_bytes());
        head[16..].copy_from_slice(&self.value.to_le_bytes());
        out.write_all(&head)?;
        out.write_all(&self.body)
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// Fails if there is no more, or what there is is no frame.
    pub fn read(from: &mut impl Read) -> Result<Self, FrameError> {
        let mut head = [0; HEAD];
        if from.read(&mut head[..1])? == 0 {
            return Err(FrameError::Over);
        }
        from.read_exact(&mut head[1..])?;
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let kind = Kind::of(head[4]).ok_or(FrameError::Kind(head[4]))?;
        let length = number(0);
        if length > LONGEST {
            return Err(FrameError::Long(length));
        }
        let mut body = vec![0; length as usize];
        from.read_exact(&mut body)?;
        let value = u64::from(number(16)) | u64::from(number(20)) << 32;
        Ok(Self { kind, side: head[5], ecn: head[6] & 3, connection: number(8), value, body })
    }
}
