//! The process of the page: how the gateway starts it and looks after it, and how it gives up its rights.

use crate::error::Error;
use crate::file::Kind;
use crate::page::history::History;
use crate::page::sampler::{Sampler, unix_time};
use crate::page::serve;
use crate::page_keys::Settings;
use crate::surroundings::say;
use nix::unistd::{Gid, Uid, geteuid, setgid, setgroups, setuid};
use penstock_appliance::desk::Beside;
use penstock_appliance::error::Error as AskError;
use penstock_appliance::socket::client::Connection;
use penstock_appliance::socket::place;
use penstock_core::units::{Instant, Span};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

/// A page that ended is started again after this time.
const AGAIN: Span = Span::from_secs(10);
/// The user and the group `nobody`.
const NOBODY: u32 = 65_534;

/// The process of the page as the gateway has it.
#[derive(Debug)]
pub struct Process {
    file: PathBuf,
    child: Option<(Child, ChildStdin)>,
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
        if let Some((child, _)) = &mut self.child {
            match child.try_wait() {
                Ok(None) => return,
                Ok(Some(status)) => self.ended = Some(status.to_string()),
                Err(error) => self.ended = Some(error.to_string()),
            }
            (self.child, self.again) = (None, now + AGAIN);
        }
        if now >= self.again {
            self.again = now + AGAIN;
            match self.start() {
                Ok(child) => self.child = Some(child),
                Err(error) => self.ended = Some(error.to_string()),
            }
        }
    }

    fn start(&self) -> std::io::Result<(Child, ChildStdin)> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("penstock-gateway").arg("page").arg(&self.file);
        // It ends when this pipe does, and not by a Ctrl-C that is for the gateway.
        let mut child = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let alive = child.stdin.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok((child, alive))
    }

    /// Returns why there is no page; `None` if there is one.
    pub fn mark(&self) -> Option<String> {
        let ended = self.ended.as_ref().filter(|_| self.child.is_none())?;
        Some(format!(
            "there is no page: its process ended ({ended}); it is started again every {} s",
            AGAIN.as_secs_f64()
        ))
    }
}

impl Beside for Process {
    fn tick(&mut self, now: Instant) {
        self.tick(now);
    }
    fn mark(&self) -> Option<String> {
        self.mark()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Says where a page is.
pub fn announce(page: &Settings) {
    let scheme = if page.tls.is_some() { "https" } else { "http" };
    say(&format!("page: {scheme}://{}/", page.listen));
}

/// The process of the page; returns why it ended.
pub fn run(file: &Kind) -> Error {
    match open(file) {
        Ok((sampler, server)) => {
            let other = Arc::clone(&sampler);
            std::thread::spawn(move || server.run(&other));
            Error::Ask(AskError::Control(sampler.run().to_string()))
        }
        Err(error) => error,
    }
}

/// Opens all that needs rights, gives them up, and begins.
fn open(file: &Kind) -> Result<(Arc<Sampler>, serve::Server), Error> {
    let control = |what: String| Error::Ask(AskError::Control(what));
    let settings = file.page().cloned().ok_or_else(|| control("the file has no table [page]".into()))?;
    let directory = place::directory().ok_or_else(|| control("there is no directory of control sockets".into()))?;
    let connection = Connection::open(&place::socket(&directory, file.name())).map_err(|e| control(e.to_string()))?;
    let day = settings.history.as_ref().map(|path| {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::File::options().read(true).write(true).create(true).truncate(false).open(path)
    });
    let day = day.transpose().map_err(Error::io("cannot open the `history` of [page]"))?;
    let tls = settings.tls.as_ref().map(serve::tls).transpose()?;
    let listener = TcpListener::bind(settings.listen).map_err(Error::io("cannot listen at the `listen` of [page]"))?;
    give_up_rights().map_err(Error::io("cannot give up the rights of root"))?;
    // The gateway holds the other end of the standard input for as long as it lives.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let sampler = Sampler::new(connection, History::with(day, unix_time()));
    Ok((Arc::new(sampler), serve::Server::new(listener, tls, &settings)))
}

fn give_up_rights() -> nix::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    setgroups(&[])?;
    setgid(Gid::from_raw(NOBODY))?;
    setuid(Uid::from_raw(NOBODY))
}
