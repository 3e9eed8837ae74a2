//! Files of the fates of packets, written by a thread of their own while packets pass: CSV for `--packets`, pcapng for
//! `--pcapng`.
//!
//! The loop fills sheets of [`ENTRIES`](penstock_shaper::sheet::ENTRIES) packets and exchanges full ones for empty ones, which costs it a few
//! microseconds and never a wait. If the file is slower than the packets for so long that all sheets wait to be written,
//! the packets of the next sheet are not written, but counted as lost.

use crate::error::Error;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use penstock_shaper::direction::Direction;
use penstock_shaper::journal::{self, Journal};
use penstock_shaper::sheet::Sheet;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub trait Form: Send + 'static {
    type Sheet: Sheet;
    /// Largest number of sheets, which bounds the memory.
    const SHEETS: usize;
    fn option(&self) -> &'static str;
    fn head(&mut self, text: &mut Vec<u8>) -> io::Result<()>;
    fn write(&mut self, sheet: &Self::Sheet, text: &mut Vec<u8>) -> io::Result<()>;
}

type OneWay = (Direction, Journal);

/// A line for each packet.
#[derive(Debug)]
pub struct Csv;

impl Form for Csv {
    type Sheet = OneWay;
    /// They hold half a million packets in 21 MB.
    const SHEETS: usize = 128;

    fn option(&self) -> &'static str {
        "--packets"
    }

    fn head(&mut self, text: &mut Vec<u8>) -> io::Result<()> {
        writeln!(text, "{}", journal::CSV_HEADER)
    }

    fn write(&mut self, (direction, journal): &OneWay, text: &mut Vec<u8>) -> io::Result<()> {
        journal::write(journal, ["forward", "reverse"][direction.index()], text)
    }
}

#[derive(Debug)]
pub struct FateFile<F: Form> {
    pub written: Written,
    full: SyncSender<F::Sheet>,
    empty: Receiver<F::Sheet>,
    made: usize,
}

#[derive(Debug)]
pub struct Written {
    option: &'static str,
    path: PathBuf,
    counters: Arc<Counters>,
    writer: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Counters {
    written: AtomicU64,
    lost: AtomicU64,
    /// The first error.
    error: OnceLock<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lines {
    /// Number of lines that were written.
    pub lines: u64,
    /// Number of packets whose line was lost: the file was too slow, or could not be written.
    pub lost: u64,
    /// The first error of the file; `None` if there was none.
    pub error: Option<String>,
}

impl<F: Form> FateFile<F> {
    /// Opens the file, writes what it begins with and starts the thread that writes the packets.
    pub fn start(path: &Path, mut form: F) -> Result<Self, Error> {
        let option = form.option();
        let failed = |e: io::Error| {
            let no_reader = e.raw_os_error() == Some(libc::ENXIO);
            let advice = if no_reader { "; nobody reads this pipe: start its reader first" } else { "" };
            Error::User(format!("{option} {}: {e}{advice}", path.display()))
        };
        let (full, orders) = sync_channel(F::SHEETS);
        let (returns, empty) = sync_channel(F::SHEETS);
        let counters = Arc::new(Counters::default());
        let mut head = Vec::new();
        let file = form.head(&mut head).and_then(|()| begin(path, &head)).map_err(failed)?;
        let writer = Writer { file, end: None, counters: Arc::clone(&counters) };
        let builder = std::thread::Builder::new().name("packets".into());
        let writer = builder.spawn(move || writer.run(form, &orders, &returns)).map_err(failed)?;
        Ok(Self { written: Written { option, path: path.to_owned(), counters, writer }, full, empty, made: 0 })
    }

    /// Exchanges a full sheet for an empty one. Never waits: if no sheet is empty the packets of this one are lost.
    pub fn exchange(&mut self, sheet: F::Sheet) -> F::Sheet {
        let empty = self.empty.try_recv().ok().or_else(|| {
            self.made += 1;
            (self.made <= F::SHEETS).then(F::Sheet::empty)
        });
        let Some(empty) = empty else { return self.lose(sheet) };
        if let Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) = self.full.try_send(sheet) {
            self.lose(back);
        }
        empty
    }

    fn lose(&self, mut sheet: F::Sheet) -> F::Sheet {
        self.written.counters.lost.fetch_add(sheet.packets() as u64, Ordering::Relaxed);
        sheet.clear();
        sheet
    }

    /// Ends the file. The writer has this long to write what waits; then it is left alone with it.
    pub fn close(self, patience: Duration) -> Written {
        drop(self.full);
        self.written.wait(patience);
        self.written
    }
}

impl Written {
    pub fn lines(&self) -> Lines {
        Lines {
            lines: self.counters.written.load(Ordering::Relaxed),
            lost: self.counters.lost.load(Ordering::Relaxed),
            error: self.counters.error.get().cloned(),
        }
    }

    /// Waits until all is written, at most this long; returns whether it is.
    pub fn wait(&self, patience: Duration) -> bool {
        let begin = Instant::now();
        while !self.writer.is_finished() && begin.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.writer.is_finished()
    }

    /// Returns what went wrong, in a sentence; `None` if every line is in the file.
    pub fn complaint(&self) -> Option<String> {
        let Lines { lines, lost, error } = self.lines();
        let (option, path) = (self.option, self.path.display());
        let slow = if self.writer.is_finished() { "" } else { "; more of them wait to be written" };
        let complains = lost > 0 || error.is_some() || !self.writer.is_finished();
        let why = error.unwrap_or_else(|| "the file was slower than the packets".into());
        let what = if option == "--pcapng" { "packets" } else { "lines" };
        complains.then(|| format!("{option} {path}: {lines} {what} are in the file, {lost} are lost{slow}: {why}"))
    }
}

/// Opens a file and writes what it begins with. A pipe must have a reader, because waiting for one would take forever.
fn begin(path: &Path, head: &[u8]) -> io::Result<File> {
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(false).custom_flags(libc::O_NONBLOCK).open(path)?;
    let flags = OFlag::from_bits_truncate(fcntl(&file, FcntlArg::F_GETFL)?) & !OFlag::O_NONBLOCK;
    fcntl(&file, FcntlArg::F_SETFL(flags))?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    (&file).write_all(head)?;
    Ok(file)
}

struct Writer {
    file: File,
    /// Where the last whole line ends, after an error that may have left a part of a line.
    end: Option<u64>,
    counters: Arc<Counters>,
}

impl Writer {
    fn run<F: Form>(mut self, mut form: F, orders: &Receiver<F::Sheet>, returns: &SyncSender<F::Sheet>) {
        let mut text = Vec::new();
        for mut sheet in orders {
            text.clear();
            let result = form.write(&sheet, &mut text).and_then(|()| self.write(&text));
            let counter = match result {
                Ok(()) => &self.counters.written,
                Err(error) => {
                    let _ = self.counters.error.set(error.to_string());
                    &self.counters.lost
                }
            };
            counter.fetch_add(sheet.packets() as u64, Ordering::Relaxed);
            sheet.clear();
            let _ = returns.try_send(sheet);
        }
    }

    /// Writes all of the text, or nothing: what an error leaves in a file is cut off.
    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if let Some(end) = self.end {
            self.file.set_len(end)?;
            self.file.seek(SeekFrom::Start(end))?;
            self.end = None;
        }
        let begin = self.file.stream_position();
        self.file.write_all(text).inspect_err(|_| {
            // A pipe or a device cannot be cut.
            if let Ok(begin) = begin
                && self.file.metadata().is_ok_and(|meta| meta.is_file())
            {
                self.end = Some(begin);
                let _ = self.file.set_len(begin);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::packet::FlowId;
    use penstock_core::units::{Bytes, Instant as Time, Span};
    use penstock_shaper::journal::Entry;
    use penstock_shaper::sheet::ENTRIES;

    fn journal(entries: u32) -> Journal {
        let mut journal = Journal::default();
        for flow in 0..entries {
            let (at, waited, size) = (Time::ZERO, Span::ZERO, Bytes::new(1500));
            journal.push(Entry { at, waited, flow: FlowId(flow), size, dropped: None });
        }
        journal
    }

    fn temporary(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("penstock-packets-{}-{name}", std::process::id()))
    }

    #[test]
    fn each_packet_is_a_line_and_an_older_file_is_replaced() {
        let path = temporary("lines");
        std::fs::write(&path, "older, longer".repeat(1000)).unwrap();
        let mut file = FateFile::start(&path, Csv).unwrap();
        (0..3).for_each(|_| assert!(file.exchange((Direction::Reverse, journal(5))).1.is_empty()));
        let closed = file.close(Duration::from_secs(10));
        assert_eq!((closed.lines(), closed.complaint()), (Lines { lines: 15, lost: 0, error: None }, None));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 16);
        assert!(text.starts_with(journal::CSV_HEADER) && text.ends_with("reverse,0,0,4,1500,sent\n"), "{text}");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_is_told_at_once() {
        for path in ["/nowhere/packets.csv", "/dev/full", "/"] {
            let error = FateFile::start(Path::new(path), Csv).unwrap_err();
            assert!(error.to_string().contains(path) && error.exit_code() == 2, "{error}");
        }
    }

    /// Nobody reads the pipe, which holds 64 KiB: the writer waits, and all journals are soon with it.
    #[test]
    fn what_a_slow_file_cannot_take_is_counted_and_nobody_waits() {
        let path = temporary("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let refused = FateFile::start(&path, Csv).unwrap_err();
        assert!(refused.to_string().contains("packets"), "a pipe without a reader: {refused}");
        let reader = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
        let flags = fcntl(begin(&path, b"").unwrap(), FcntlArg::F_GETFL).unwrap();
        assert_eq!(flags & libc::O_NONBLOCK, 0, "a line that finds no room waits for it");
        let mut file = FateFile::start(&path, Csv).unwrap();
        let begin = Instant::now();
        let mut full = journal(ENTRIES as u32);
        for _ in 0..Csv::SHEETS + 10 {
            full = if full.is_empty() { journal(ENTRIES as u32) } else { full };
            (_, full) = file.exchange((Direction::Forward, full));
        }
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        assert_eq!(file.written.lines().lost, 10 * ENTRIES as u64);
        let closed = file.close(Duration::from_millis(10));
        assert!(closed.complaint().unwrap().contains("wait to be written"));
        drop(reader); // the writer ends with an error
        assert!(closed.wait(Duration::from_secs(10)));
        let Lines { lines, lost, .. } = closed.lines();
        assert_eq!(lines + lost, (Csv::SHEETS + 10) as u64 * ENTRIES as u64, "every line is accounted for");
        std::fs::remove_file(&path).unwrap();
    }
}
