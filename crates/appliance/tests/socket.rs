//! The server and the client over a real socket.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use penstock_appliance::socket::client::{self, ask};
use penstock_appliance::socket::message::{LONGEST_ANSWER, LONGEST_REQUEST, Request, parse_answer};
use penstock_appliance::socket::place;
use penstock_appliance::socket::server::{Error, MOST_CLIENTS, PATIENCE, Peer, Server};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A directory that is removed at the end.
struct Room(PathBuf);

impl Room {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("penstock-control-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        Self(std::env::temp_dir().join(name))
    }

    fn socket(&self) -> PathBuf {
        place::socket(&self.0, "test")
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn answer(peer: Peer, request: Request) -> Result<String, penstock_appliance::socket::message::Refusal> {
    match request {
        Request::Status => Ok("{\"fine\":true}".into()),
        Request::Top { most, .. } => Ok(format!("\"{}\"", "x".repeat(most * 1000))),
        Request::Set(set) => Ok(set.values.len().to_string()),
        Request::Apply(file) => Ok(file.text),
        Request::Keep => Ok(peer.uid.unwrap_or(u32::MAX).to_string()),
        Request::Rollback => Ok(peer.pid.unwrap_or_default().to_string()),
    }
}

/// Serves until `work` has ended; returns the number of turns.
fn serving(server: &mut Server, work: impl FnOnce() + Send) -> u64 {
    let over = AtomicBool::new(false);
    let mut turns = 0;
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            work();
            over.store(true, Ordering::Relaxed);
        });
        while !over.load(Ordering::Relaxed) && !worker.is_finished() {
            server.turn(Instant::now(), &mut |asker, request| Some(answer(asker.peer, request)));
            turns += 1;
        }
    });
    turns
}

fn lines(stream: &UnixStream) -> impl Iterator<Item = String> {
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    BufReader::new(stream).lines().map(Result::unwrap)
}

#[test]
fn the_kernel_tells_who_asks() {
    let room = Room::new();
    let mut server = Server::open(&room.socket()).unwrap();
    serving(&mut server, || {
        let uid = ask(&room.socket(), &Request::Keep).unwrap();
        assert_eq!(uid.as_u64(), Some(u64::from(nix::unistd::getuid().as_raw())));
        let pid = ask(&room.socket(), &Request::Rollback).unwrap();
        assert_eq!(pid.as_u64(), Some(u64::from(std::process::id())));
    });
}

#[test]
fn a_question_is_answered_and_a_mistake_is_refused() {
    let room = Room::new();
    let path = room.socket();
    let mut server = Server::open(&path).unwrap();
    serving(&mut server, || {
        assert_eq!(ask(&path, &Request::Status).unwrap(), serde_json::json!({"fine": true}));
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"nonsense\n{\"v\":1,\"do\":\"status\"}\n{\"v\":1,").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let answers: Vec<String> = lines(&stream).collect();
        assert_eq!(answers.len(), 2, "{answers:?}");
        assert!(parse_answer(answers[0].as_bytes()).unwrap_err().what.contains("JSON"));
        assert!(parse_answer(answers[1].as_bytes()).is_ok(), "a mistake does not end the connection");
    });
}

/// Of two questions that come at once the second is answered without a further word. When all is answered, the server sleeps.
#[test]
fn the_server_has_something_to_do_only_while_a_question_is_there() {
    let room = Room::new();
    let mut server = Server::open(&room.socket()).unwrap();
    let client = UnixStream::connect(room.socket()).unwrap();
    let line = Request::Status.line();
    (&client).write_all([line.as_str(), line.as_str()].concat().as_bytes()).unwrap();
    let ready =
        |server: &Server| poll(&mut [PollFd::new(server.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO) == Ok(1);
    let mut turns = 0;
    while ready(&server) && turns < 100 {
        server.turn(Instant::now(), &mut |asker, request| Some(answer(asker.peer, request)));
        turns += 1;
    }
    assert!(turns < 100, "it never sleeps");
    assert_eq!(lines(&client).take(2).count(), 2);
    (&client).write_all(b"{").unwrap();
    assert!(ready(&server), "the begin of a question");
}

#[test]
fn an_answer_that_ends_early_or_never_is_told_as_what_it_is() {
    let room = Room::new();
    std::fs::create_dir(&room.0).unwrap();
    let (path, none) = (room.0.join("s"), format!("no answer from {}/s: ", room.0.display()));
    let listener = UnixListener::bind(&path).unwrap();
    let asked = |answer: Vec<u8>| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (stream, _) = listener.accept().unwrap();
                BufReader::new(&stream).read_line(&mut String::new()).unwrap();
                // Who asks ends the connection when it has read enough.
                let _ = (&stream).write_all(&answer);
            });
            ask(&path, &Request::Status).unwrap_err().to_string()
        })
    };
    let ended = format!("{none}the connection ended");
    assert_eq!([asked(b"{\"v\":1,".to_vec()), asked(vec![b' '; LONGEST_ANSWER - 1])], [ended.clone(), ended]);
    assert_eq!(asked(vec![b' '; LONGEST_ANSWER + 1]), format!("{none}the answer is too long"));
}

/// One client waits for its answer while others are served; what is said to one that has gone is heard by nobody.
#[test]
fn a_request_that_takes_long_is_answered_later() {
    let room = Room::new();
    let path = room.socket();
    let mut server = Server::open(&path).unwrap();
    let mut waiting = Vec::new();
    let turn = |server: &mut Server, waiting: &mut Vec<_>| {
        server.turn(Instant::now(), &mut |asker, request| match request {
            Request::Keep => {
                waiting.push(asker);
                None
            }
            other => Some(answer(asker.peer, other)),
        });
    };
    let mut gone = UnixStream::connect(&path).unwrap();
    gone.write_all(b"{\"v\":1,\"do\":\"keep\"}\n").unwrap();
    while waiting.is_empty() {
        turn(&mut server, &mut waiting);
    }
    drop(gone);
    while server.clients() > 0 {
        turn(&mut server, &mut waiting);
    }
    let later = Ok("\"later\"".to_owned());
    std::thread::scope(|threads| {
        let slow = threads.spawn(|| ask(&path, &Request::Keep));
        while waiting.len() < 2 {
            turn(&mut server, &mut waiting);
        }
        server.answer(waiting[0], &Ok("\"another's\"".into()), Instant::now());
        let quick = threads.spawn(|| ask(&path, &Request::Status));
        while !quick.is_finished() {
            turn(&mut server, &mut waiting);
        }
        assert_eq!(quick.join().unwrap().unwrap(), serde_json::json!({"fine": true}));
        assert!(!slow.is_finished(), "nobody has answered it");
        server.answer(waiting[1], &later, Instant::now());
        while !slow.is_finished() {
            turn(&mut server, &mut waiting);
        }
        assert_eq!(slow.join().unwrap().unwrap(), "later");
    });
    server.answer(waiting[1], &later, Instant::now());
}

#[test]
fn only_the_user_may_ask_and_the_path_is_free_afterwards() {
    let room = Room::new();
    let path = room.socket();
    let server = Server::open(&path).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    // Whoever may open the lock may take it, and no appliance could begin any more.
    assert_eq!([mode(&path), mode(&path.with_extension("sock.lock"))], [0o600; 2]);
    assert_eq!(place::listening(&room.0, "te"), ["test"]);
    drop(server);
    assert!(!path.exists() && !path.with_extension("sock.lock").exists());
    let gone = ask(&path, &Request::Status).unwrap_err();
    assert!(matches!(gone, client::Error::NoAppliance(..)), "{gone}");
}

#[test]
fn a_second_instance_is_refused_and_a_stale_socket_is_replaced() {
    let room = Room::new();
    let path = room.socket();
    let first = Server::open(&path).unwrap();
    let second = Server::open(&path).unwrap_err();
    assert!(matches!(second, Error::Taken(_)) && second.to_string().contains("another program"), "{second}");
    assert!(path.exists(), "the refused one leaves the socket of the other");
    drop(first);
    // What a killed process leaves: a socket at which nobody listens.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists() && place::listening(&room.0, "").is_empty());
    let mut server = Server::open(&path).unwrap();
    serving(&mut server, || assert!(ask(&path, &Request::Status).is_ok()));
}

#[test]
fn a_path_that_cannot_be_is_told() {
    let long = Path::new("/tmp").join("x".repeat(200));
    let error = Server::open(&long).unwrap_err();
    assert!(error.to_string().contains("control socket"), "{error}");
}

#[test]
fn clients_beyond_the_most_are_refused_and_those_before_are_served() {
    let room = Room::new();
    let path = room.socket();
    let mut server = Server::open(&path).unwrap();
    serving(&mut server, || {
        let mut clients: Vec<_> = (0..MOST_CLIENTS).map(|_| UnixStream::connect(&path).unwrap()).collect();
        for client in &mut clients {
            client.write_all(Request::Status.line().as_bytes()).unwrap();
            assert!(parse_answer(lines(client).next().unwrap().as_bytes()).is_ok());
        }
        let more = UnixStream::connect(&path).unwrap();
        let refusal = parse_answer(lines(&more).next().unwrap().as_bytes()).unwrap_err();
        assert!(refusal.what.contains("16 clients"), "{refusal}");
        let first = &mut clients[0];
        first.write_all(Request::Status.line().as_bytes()).unwrap();
        assert!(lines(first).next().is_some());
    });
}

/// Each turn does a bounded amount of work whatever clients do: an endless line, one that is never ended, one that is never
/// read, and many at once.
#[test]
fn hostile_clients_neither_block_nor_stay() {
    let room = Room::new();
    let path = room.socket();
    let mut server = Server::open(&path).unwrap();
    serving(&mut server, || {
        let mut endless = UnixStream::connect(&path).unwrap();
        let _ = endless.write_all(&vec![b'x'; 4 * LONGEST_REQUEST]);
        let refusal = parse_answer(lines(&endless).next().unwrap().as_bytes()).unwrap_err();
        assert!(refusal.what.contains("at most"), "{refusal}");
        let mut silent = UnixStream::connect(&path).unwrap();
        silent.write_all(b"{\"v\":1").unwrap();
        // A megabyte of answer, which nobody reads.
        let mut deaf = UnixStream::connect(&path).unwrap();
        deaf.write_all(Request::Top { by: Default::default(), most: 1000 }.line().as_bytes()).unwrap();
        for _ in 0..100 {
            assert!(ask(&path, &Request::Status).is_ok());
        }
        let mut all = Vec::new();
        let mut eager = UnixStream::connect(&path).unwrap();
        eager.write_all(Request::Status.line().repeat(50).as_bytes()).unwrap();
        eager.shutdown(std::net::Shutdown::Write).unwrap();
        eager.read_to_end(&mut all).unwrap();
        assert_eq!(all.iter().filter(|byte| **byte == b'\n').count(), 50);
        std::mem::forget((silent, deaf));
    });
    assert!(server.clients() >= 2);
    server.tidy(Instant::now() + PATIENCE + Duration::from_secs(1));
    assert_eq!(server.clients(), 0, "silent clients are disconnected");
}

#[test]
fn a_name_never_leaves_the_directory() {
    assert!(["emulate", "emulate-12", "a.b_c"].into_iter().all(place::is_name));
    assert!(!["", ".", "..", ".hidden", "a/b", "a b", "ä", &"x".repeat(65)].into_iter().any(place::is_name));
    assert_eq!(place::socket(Path::new("/run/penstock"), "a"), Path::new("/run/penstock/a.sock"));
}
