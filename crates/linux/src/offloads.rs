//! What merges packets on an interface before anybody reads them. Source: include/uapi/linux/ethtool.h of Linux 6.18.

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The request for all that `ethtool` asks (SIOCETHTOOL).
const ETHTOOL: libc::c_ulong = 0x8946;
/// Whether packets are merged on arrival (ETHTOOL_GGRO), and the flags among which is that of hardware which does
/// (ETHTOOL_GFLAGS, ETH_FLAG_LRO).
const GRO: u32 = 0x2b;
const FLAGS: u32 = 0x25;
const LRO: u32 = 1 << 15;

/// Returns the words of `ethtool -K` for what merges arriving packets on an interface of the namespace of this thread.
pub fn merging(name: &str) -> io::Result<Vec<&'static str>> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut found = Vec::new();
    for (command, bits, word) in [(GRO, 1, "gro"), (FLAGS, LRO, "lro")] {
        if ask(&socket, name, command)? & bits != 0 {
            found.push(word);
        }
    }
    Ok(found)
}

#[expect(unsafe_code, reason = "the wrapper of ioctl among the dependencies knows no such request")]
fn ask(socket: &OwnedFd, name: &str, command: u32) -> io::Result<u32> {
    let mut value = [command, 0];
    // SAFETY: `ifreq` is plain data for which zero is valid. The call reads the name, which ends with a zero, and reads and
    // writes both words at the pointer.
    let refused = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        let room = request.ifr_name.len() - 1;
        for (place, byte) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
            *place = byte as libc::c_char;
        }
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        libc::ioctl(socket.as_raw_fd(), ETHTOOL as _, &raw mut request) != 0
    };
    match io::Error::last_os_error() {
        // An interface without these questions merges nothing.
        error if refused && error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(0),
        error if refused => Err(error),
        _ => Ok(value[1]),
    }
}
