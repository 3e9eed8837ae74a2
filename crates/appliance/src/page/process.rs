//! The process of the page: how an appliance starts it and looks after it, and how it gives up its rights.

use crate::error::Error;
use crate::output::say;
use crate::page::Content;
use crate::page::access::Access;
use crate::page::history::History;
use crate::page::keys::Settings;
use crate::page::places::Places;
use crate::page::sampler::{Sampler, unix_time};
use crate::page::serve::{self, Shared};
use crate::second::Second;
use crate::socket::client::Connection;
use crate::socket::place;
use nix::unistd::{Gid, Uid, geteuid, setgid, setgroups, setuid};
use penstock_core::units::{Instant, Span};
use penstock_linux::tcp::{self, Listener};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

/// A page that ended is started again after this time.
const AGAIN: Span = Span::from_secs(10);
/// The user and the group `nobody`.
const NOBODY: u32 = 65_534;

/// The process of the page as the appliance has it.
#[derive(Debug)]
pub struct Process {
    file: PathBuf,
    child: Option<Second>,
    again: Instant,
    /// How the last one ended.
    ended: Option<String>,
}

impl Process {
    /// The page of this file, which is started at the first [`Process::tick`].
    pub fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), child: None, again: Instant::ZERO, ended: None }
    }

    /// Starts the process if it must run and does not.
    pub fn tick(&mut self, now: Instant) {
        if let Some(child) = &mut self.child {
            let Some(ended) = child.ended() else { return };
            (self.child, self.ended, self.again) = (None, Some(ended), now + AGAIN);
        }
        if now >= self.again {
            self.again = now + AGAIN;
            match Second::start("page", [&self.file], Stdio::null()) {
                Ok(child) => self.child = Some(child),
                Err(error) => self.ended = Some(error.to_string()),
            }
        }
    }

    /// Returns why there is no page; `None` if there is one.
    pub fn mark(&self) -> Option<String> {
        let ended = self.ended.as_ref().filter(|_| self.child.is_none())?;
        let seconds = AGAIN.as_secs_f64();
        Some(format!("there is no page: its process ended ({ended}); it is started again every {seconds} s"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            child.kill();
        }
    }
}

/// Says where a page is.
pub fn announce(page: &Settings) {
    let scheme = if page.tls.is_some() { "https" } else { "http" };
    say(&format!("page: {scheme}://{}/", page.listen));
}

/// The process of the page of the appliance whose control socket has this name; returns why it ended.
pub fn run(content: &'static Content, settings: Option<&Settings>, name: &str) -> Error {
    match open(content, settings, name) {
        Ok((listener, shared)) => {
            let other = Arc::clone(&shared);
            std::thread::spawn(move || serve::run(&listener, &other));
            Error::User(shared.sampler.run().to_string())
        }
        Err(error) => error,
    }
}

/// Opens all that needs rights, gives them up, and begins.
fn open(content: &'static Content, settings: Option<&Settings>, name: &str) -> Result<(Listener, Arc<Shared>), Error> {
    let settings = settings.ok_or_else(|| Error::User("the file has no table [page]".into()))?;
    let connection = Connection::open(&place::named(name)?).map_err(|e| Error::User(e.to_string()))?;
    let day = settings.history.as_ref().map(|path| {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::File::options().read(true).write(true).create(true).truncate(false).open(path)
    });
    let day = day.transpose().map_err(Error::io("cannot open the `history` of [page]"))?;
    let tls = settings.tls.as_ref().map(serve::tls).transpose()?;
    let listener =
        tcp::Listener::bind(settings.listen).map_err(Error::io("cannot listen at the `listen` of [page]"))?;
    give_up_rights().map_err(Error::io("cannot give up the rights of root"))?;
    // The appliance holds the other end of the standard input for as long as it lives.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let sampler = Sampler::new(content, connection, History::with(content, day, unix_time()));
    let access = Access::new(settings);
    Ok((listener, Arc::new(Shared { sampler, access, tls, places: Places::default() })))
}

fn give_up_rights() -> nix::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    setgroups(&[])?;
    setgid(Gid::from_raw(NOBODY))?;
    setuid(Uid::from_raw(NOBODY))
}
