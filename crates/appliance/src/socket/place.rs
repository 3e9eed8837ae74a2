//! The paths at which appliances listen.

use crate::error::Error;
use penstock_linux::local;
use std::path::{Path, PathBuf};

/// The directory of the sockets of root.
const SYSTEM: &str = "/run/penstock";
/// The end of the name of each socket.
const SUFFIX: &str = ".sock";

/// Returns the directory of sockets: `/run/penstock` for root, and a directory in `$XDG_RUNTIME_DIR` for others. `None`
/// if there is none.
pub fn directory() -> Option<PathBuf> {
    if nix::unistd::geteuid().is_root() {
        return Some(PathBuf::from(SYSTEM));
    }
    std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()).map(|dir| Path::new(&dir).join("penstock"))
}

/// Returns the path of the socket with this name; fails if there is no directory of sockets.
pub fn named(name: &str) -> Result<PathBuf, Error> {
    let none = "there is no directory of control sockets: XDG_RUNTIME_DIR is not set";
    directory().map(|directory| socket(&directory, name)).ok_or_else(|| Error::User(none.into()))
}

/// Returns the path of the socket with this name in a directory.
pub fn socket(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}{SUFFIX}"))
}

/// True for a name that is a name of a file in the directory and nothing else.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.len() <= 64 && !name.starts_with('.') && name.chars().all(plain)
}

/// Returns the names in a directory whose appliance listens, in order, of those that begin with `prefix`.
pub fn listening(directory: &Path, prefix: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let name = |entry: std::fs::DirEntry| entry.file_name().to_str()?.strip_suffix(SUFFIX).map(str::to_owned);
    let mut names: Vec<String> = (entries.flatten().filter_map(name))
        .filter(|name| name.starts_with(prefix))
        .filter(|name| local::listens(&socket(directory, name)))
        .collect();
    names.sort();
    names
}
