//! An emulated link between two sides of a testbed, and the page of a gateway.

use clap::Parser;
use penstock_appliance::output::Printer;
use penstock_emulator::cli::Options;
use penstock_emulator::emulator::Emulator;
use penstock_emulator::report::Report;
use penstock_linux::signals::Signals;
use penstock_linux::testing::{PATIENCE, Testbed};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

/// The program.
pub const GATEWAY: &str = env!("CARGO_BIN_EXE_penstock-gateway");

/// A link between the interfaces `eth0` of two sides, 10.77.0.1 and 10.77.0.2, which ends with this value.
pub struct Link {
    near: String,
    thread: Option<JoinHandle<Report>>,
}

impl Link {
    /// Starts a link with these options of `penstock-emulate`.
    pub fn new(bed: &Testbed, [near, far]: [&str; 2], options: &str) -> Self {
        let words = format!("x --left eth0 --right eth0 --realtime --duration 1800s {options}");
        let options = Options::parse_from(words.split_ascii_whitespace());
        let plan = options.plans(&()).unwrap().remove(0);
        let namespaces = [bed.open(near), bed.open(far)];
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let (signals, printer) = (Signals::open(&[]).unwrap(), Printer::open(1).unwrap());
            let opened = Emulator::open(plan, &options, &namespaces, signals, None, printer.offers());
            let (emulator, desk) = opened.unwrap();
            ready.send(()).unwrap();
            emulator.run(desk).0.report
        });
        is_ready.recv_timeout(PATIENCE).unwrap();
        Self { near: bed.namespace(near), thread: Some(thread) }
    }

    /// Ends the link; returns its report.
    pub fn end(mut self) -> Report {
        self.cut().unwrap().join().unwrap()
    }

    fn cut(&mut self) -> Option<JoinHandle<Report>> {
        let thread = self.thread.take()?;
        let cut = ["-n", &self.near, "link", "del", "eth0"];
        let _ = Command::new("ip").args(cut).stderr(Stdio::null()).status();
        Some(thread)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.cut().map(JoinHandle::join);
    }
}

/// Sends a request to the page of the gateway of a side; returns the answer as it came, or nothing if there is no page.
pub fn page(bed: &Testbed, side: &str, request: &str) -> String {
    let Ok(mut stream) = bed.run(side, || TcpStream::connect("127.0.0.1:7080")) else { return String::new() };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
    let head = head.replacen('\n', "\r\n", 99);
    let lines = format!("Host: localhost:7080\r\nConnection: close\r\nContent-Length: {}", body.len());
    stream.write_all(format!("{head}\r\n{lines}\r\n\r\n{body}").as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// The body of an answer.
pub fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default()
}
