//! The system call bpf(2): the only unsafe code of this crate.
#![allow(unsafe_code)]

use super::assembler::Instruction;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The longest name of a control, with a zero at its end.
pub(super) const CONTROL_NAME: usize = 16;

const MAP_CREATE: i32 = 0;
const LOOKUP: i32 = 1;
const UPDATE: i32 = 2;
const PROG_LOAD: i32 = 5;
const BTF_LOAD: i32 = 18;
const LINK_CREATE: i32 = 28;
/// A map that holds a structure of functions of the kernel, and where such a map is attached.
const STRUCT_OPS: u32 = 26;
const OF_STRUCT_OPS: u32 = 44;
/// The structure is in use as long as somebody has its link.
const BY_LINK: u32 = 1 << 13;
const LOG: usize = 1 << 16;

/// The kind of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Hash = 1,
    Array = 2,
    LruHash = 9,
}

/// What a program is for: its type, and where it is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hook {
    /// It runs at events of TCP connections.
    Sockets,
    /// It runs for each packet that sockets send.
    Packets,
    /// It is a member of a structure of functions of the kernel.
    Control {
        /// The number of the structure among the types of the kernel.
        ops: u32,
        /// The place of the member.
        member: u32,
    },
}

impl Hook {
    /// The type of the program, where it is attached, and the number of a type of the kernel.
    fn numbers(self) -> [u32; 3] {
        match self {
            Self::Sockets => [13, 3, 0],
            Self::Packets => [8, 1, 0],
            Self::Control { ops, member } => [27, member, ops],
        }
    }
}

/// The arguments of a call, which begin with zeros; the kernel takes those that it does not know only if they are zero.
#[repr(C, align(8))]
struct Arguments([u8; 120]);

impl Arguments {
    fn new() -> Self {
        Self([0; 120])
    }

    fn put(mut self, at: usize, bytes: &[u8]) -> Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    fn word(self, at: usize, value: u32) -> Self {
        self.put(at, &value.to_ne_bytes())
    }

    fn address<T: ?Sized>(self, at: usize, of: *const T) -> Self {
        self.put(at, &(of.cast::<u8>() as u64).to_ne_bytes())
    }

    /// Calls the kernel. What the addresses point at must live until then, and have the sizes that the command expects.
    fn call(&self, command: i32) -> io::Result<i32> {
        // SAFETY: the kernel reads 120 bytes, which are there; each caller keeps what its addresses point at.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_ptr(), self.0.len()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
    }

    fn open(&self, command: i32) -> io::Result<OwnedFd> {
        // SAFETY: these commands return a new descriptor, which nobody else has.
        self.call(command).map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) })
    }
}

/// Makes a map.
pub(super) fn map(kind: Kind, name: &str, key: u32, value: u32, entries: u32) -> io::Result<OwnedFd> {
    let arguments = Arguments::new().word(0, kind as u32).word(4, key).word(8, value).word(12, entries);
    arguments.put(28, name.as_bytes()).open(MAP_CREATE)
}

/// Writes the entry of a map whose keys have 4 bytes; the only one of an array has the key 0.
pub(super) fn write(map: BorrowedFd<'_>, key: u32, value: &[u8]) -> io::Result<()> {
    let arguments = Arguments::new().word(0, map.as_raw_fd() as u32).address(8, &raw const key);
    arguments.address(16, value.as_ptr()).call(UPDATE).map(drop)
}

/// Reads the only entry of an array with this descriptor, whose entries must have this size.
pub(super) fn read<const N: usize>(map: i32) -> io::Result<[u8; N]> {
    let (key, mut value) = (0u32, [0; N]);
    let arguments = Arguments::new().word(0, map as u32).address(8, &raw const key);
    arguments.address(16, value.as_mut_ptr()).call(LOOKUP)?;
    Ok(value)
}

/// Loads a program; the error has what the verifier of the kernel says.
pub(super) fn load(hook: Hook, name: &str, code: &[Instruction]) -> io::Result<OwnedFd> {
    let [kind, place, of] = hook.numbers();
    let licence = c"Dual MIT/GPL";
    let mut log = vec![0u8; LOG];
    let quiet = Arguments::new()
        .word(0, kind)
        .word(4, code.len() as u32)
        .address(8, code.as_ptr())
        .address(16, licence.as_ptr())
        .put(48, name.as_bytes())
        .word(68, place)
        .word(108, of);
    let error = match quiet.open(PROG_LOAD) {
        Ok(program) => return Ok(program),
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => return Err(error),
        Err(error) => error,
    };
    let wordy = quiet.word(24, 1).word(28, LOG as u32).address(32, log.as_mut_ptr());
    wordy.open(PROG_LOAD).map_err(|_| {
        let said = String::from_utf8_lossy(&log);
        let said: Vec<&str> = said.trim_end_matches('\0').lines().rev().take(6).collect();
        io::Error::other(format!("{error}: {}", said.into_iter().rev().collect::<Vec<_>>().join(" | ")))
    })
}

/// Attaches a program to a cgroup for as long as somebody has the returned descriptor.
pub(super) fn attach(hook: Hook, program: BorrowedFd<'_>, cgroup: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let arguments = Arguments::new().word(0, program.as_raw_fd() as u32).word(4, cgroup.as_raw_fd() as u32);
    arguments.word(8, hook.numbers()[1]).open(LINK_CREATE)
}

/// Makes a structure of functions known to the kernel for as long as somebody has the returned descriptor. `kind` is the
/// number of the type of its value, which has these bytes, with descriptors of programs in place of functions.
pub(super) fn operations(kind: u32, value: &[u8]) -> io::Result<OwnedFd> {
    let types = super::btf::smallest();
    let types = Arguments::new().address(0, types.as_ptr()).word(16, types.len() as u32).open(BTF_LOAD)?;
    let map = Arguments::new().word(0, STRUCT_OPS).word(4, 4).word(8, value.len() as u32).word(12, 1).word(16, BY_LINK);
    let map = map.put(28, b"penstock_cc").word(48, types.as_raw_fd() as u32).word(60, kind).open(MAP_CREATE)?;
    write(map.as_fd(), 0, value)?;
    Arguments::new().word(0, map.as_raw_fd() as u32).word(8, OF_STRUCT_OPS).open(LINK_CREATE)
}

/// Returns the number by which the kernel knows a socket (SO_COOKIE).
pub(super) fn cookie(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let (mut cookie, mut len) = (0u64, size_of::<u64>() as libc::socklen_t);
    let (level, name) = (libc::SOL_SOCKET, libc::SO_COOKIE);
    // SAFETY: the kernel writes at most `len` bytes into `cookie`, which has that size.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut cookie).cast(), &raw mut len) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(cookie) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// By this number the program knows the session of the agent, which always passes.
    #[test]
    fn each_socket_has_a_number_of_its_own() {
        let [a, b] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let [first, again, other] = [&a, &a, &b].map(|socket| cookie(socket.as_fd()).unwrap());
        assert!(first != 0 && first == again && first != other, "{first} {again} {other}");
    }
}
