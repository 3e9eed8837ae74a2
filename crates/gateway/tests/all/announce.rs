//! Rates in the segments of real connections: a host whose agent has `announce_rates` tells window and round trip of its
//! connections to whoever is on the way.

use crate::scene::{HOSTS, PART, Scene, TCP, send};
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, socket};
use penstock_core::packet::{FlowId, Packet as _, TcpFlags, TcpView};
use penstock_core::wire::{RealPacket, Transport};
use penstock_linux::testing::{PATIENCE, Transfer, skip, wait_until};
use penstock_shaper::announced::explicit_rate;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Instant;

/// The host whose connections announce.
const HOST: usize = 3;

/// A socket that sees whole IP packets of all interfaces in the namespace of a side.
fn tap(scene: &Scene, side: &str) -> OwnedFd {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let open = || socket(AddressFamily::Packet, SockType::Datagram, flags, SockProtocol::EthAll);
    scene.run(side, open).unwrap()
}

#[test]
fn segments_tell_the_rates_of_their_connections() {
    let Some(mut scene) = Scene::divided() else { return };
    if let Some(why) = scene.refused("announce_rates = true") {
        return skip(why);
    }
    for side in ["s".to_owned(), format!("c{HOST}")] {
        scene.sh(&side, "echo 1 > /proc/sys/net/ipv4/tcp_ecn");
    }
    scene.join_each(PART, &["", "", "", "control = \"c2ml_reno\"\nannounce_rates = true"]);
    let tap = tap(&scene, "s");
    let transfer = scene.transfers_of(&[HOST], 50, TCP).remove(0);
    let (begin, mut rates, mut between, mut plain) = (Instant::now(), Vec::new(), 0, 0);
    let mut buffer = vec![0; 65_536];
    while rates.len() < 20 || between < 100 {
        assert!(begin.elapsed() < PATIENCE, "{} rates, {between} segments between them", rates.len());
        let Ok(len) = recv(tap.as_raw_fd(), &mut buffer, MsgFlags::empty()) else {
            std::thread::sleep(std::time::Duration::from_millis(5));
            continue;
        };
        let mut packet = RealPacket::new(buffer[..len].to_vec(), FlowId(0));
        let Transport::Tcp { payload, .. } = packet.headers().transport else { continue };
        let (said, data) = (explicit_rate(&packet), packet.headers().end - payload);
        let source = packet.bytes()[12..16] == [10, 90, HOST as u8, 2];
        let flags = packet.tcp().map_or(TcpFlags(0), |tcp| tcp.flags());
        assert!(!said.capable || source && data > 0 && !flags.has(TcpFlags::SYN), "{said:?}");
        match said.rate {
            Some(rate) if data > 1000 => rates.push((rate.cwnd().get(), rate.rtt_ms())),
            _ if said.capable => between += 1,
            _ => plain += 1,
        }
    }
    eprintln!("windows in bytes and round trips in ms: {rates:?}; {between} segments between, {plain} without");
    // The budget is 3.8 Mbit/s, so windows are 19 segments at 60 ms (`control.rs`), or half of that for each of two.
    let right = |(window, rtt): &(u64, u16)| {
        window % 1448 == 0 && (4..=19).contains(&(window / 1448)) && (60..2000).contains(rtt)
    };
    assert!(rates.iter().all(right), "{rates:?}");
    // One rate in each round trip, of up to 19 segments.
    assert!(between > 3 * rates.len(), "{between} {}", rates.len());
    drop(transfer);
    scene.end_link();
}

/// Marks and early drops of the upload so far.
fn refused(scene: &Scene) -> (u64, u64) {
    let reverse = &scene.ask_gateway().unwrap()["reverse"];
    let count = |value: &serde_json::Value| value.as_u64().unwrap();
    (count(&reverse["marked"]), ["early", "forced", "overflow"].map(|why| count(&reverse["dropped"][why])).iter().sum())
}

/// RED-ERN marks no flow that announces nothing: without `ecn` it drops its packets. So marks show that rates are read.
#[test]
fn red_ern_of_a_gateway_marks_flows_that_announce_rates() {
    let Some(mut scene) = Scene::new("10Mbit/s") else { return };
    scene.write("[link]\nrate = \"8Mbit/s\"\n[c2ml]\ndirectory = \"c2ml\"\n");
    let gateway = scene.gateway();
    if let Some(why) = scene.refused("announce_rates = true") {
        return skip(why);
    }
    for side in ["s".to_owned(), format!("c{HOST}")] {
        scene.sh(&side, "echo 1 > /proc/sys/net/ipv4/tcp_ecn");
    }
    scene.start_agents(&["announce_rates = true"; HOSTS]);
    // From here on nobody gives budgets, so that TCP fills the queue.
    send(gateway, Signal::SIGKILL);
    serve(&mut scene, "announced");
    wait_until("budgets have ended", || scene.ask_agent(HOST)["budget_bps"].is_null());
    marks_come(scene);
}

/// The same marks without an agent: the gateway estimates the rates.
#[test]
fn red_ern_of_a_gateway_marks_flows_whose_rates_it_estimates() {
    let Some(mut scene) = Scene::new("10Mbit/s") else { return };
    for side in ["s".to_owned(), format!("c{HOST}")] {
        scene.sh(&side, "echo 1 > /proc/sys/net/ipv4/tcp_ecn");
    }
    serve(&mut scene, "estimated");
    marks_come(scene);
}

/// Starts a gateway with RED-ERN for the upload.
fn serve(scene: &mut Scene, rates: &str) {
    scene.write(&format!(
        "[interfaces]\nwan = \"eth0\"\n[link]\nrate = \"9Mbit/s\"\nreverse_rate = \"4Mbit/s\"\nreverse_limit = \"200p\"\n\
         [discipline]\nname = \"droptail\"\n[reverse_discipline]\nname = \"red-ern\"\nweight = 0.02\nrates = \"{rates}\"\n"
    ));
    scene.gateway();
}

/// Uploads until there were marks again and again.
fn marks_come(mut scene: Scene) {
    // On a busy machine a transfer may end before it begins: then there is another one.
    let mut transfers = Vec::new();
    // Slow start ends with drops; then there are marks.
    wait_until("flows are marked", || {
        if transfers.iter_mut().all(|transfer: &mut Transfer| !transfer.runs()) {
            transfers.extend(scene.transfers_of(&[HOST], 55, "-l 4K -C reno"));
        }
        refused(&scene).0 > 0
    });
    let before = refused(&scene);
    wait_until("flows are marked again and again", || refused(&scene).0 >= before.0 + 5);
    let after = refused(&scene);
    eprintln!("{} marks and {} drops, after the first mark", after.0 - before.0, after.1 - before.1);
    drop(transfers);
    scene.end_link();
}
