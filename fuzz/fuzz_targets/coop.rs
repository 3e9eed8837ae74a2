//! Any bytes as a message of C2LP, signed by the network's key or not: the codec, the gateway and the client do not
//! panic, and a message that can be read is written with the same bytes again. Whoever holds the network's key but not
//! the gateway's can change nothing in the gateway's books except for clients without a ticket.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_core::coop::client::{self, Client};
use penstock_core::coop::gateway::{self, Gateway, Outgoing, Start};
use penstock_core::coop::keys::{Key, Keyring};
use penstock_core::coop::message::{Message, decode, encode};
use penstock_core::coop::policy::{Policy, Sharing};
use penstock_core::coop::state::NodeId;
use penstock_core::units::{Instant, Rate, Span};

fn signed(bytes: &[u8], ring: &Keyring) -> Vec<u8> {
    [bytes, &ring.sign(bytes)].concat()
}

fn sender(message: &Message) -> NodeId {
    match message {
        Message::ClientHello { node, .. } => *node,
        Message::ClientBye(request) | Message::UsedBw(request, _) => request.node,
        Message::AckHello(answer) | Message::AckUsed(answer) => answer.node,
        Message::AvailBw(_) => NodeId(0),
    }
}

fuzz_target!(|data: &[u8]| {
    let (states, network) = (Keyring::new(0, &Key::new([1; 32])), Keyring::new(0, &Key::new([2; 32])));
    assert!(decode(data, &network).is_err(), "nobody guesses a tag");
    let config = gateway::Config {
        max_clients: 10,
        ..gateway::Config::new(Rate::from_bps(1_000_000), Policy::of(Sharing::Dybra))
    };
    let mut gateway = Gateway::new(config, states, 1, Start::Fresh, Instant::ZERO).expect("valid");
    let mut client = Client::new(client::Config::new(NodeId(1), 0)).expect("valid");
    let (mut now, mut sent, mut out): (Instant, Vec<Message>, Vec<Outgoing>) = (Instant::ZERO, Vec::new(), Vec::new());
    client.open(now, &mut sent);
    for piece in data.chunks(120) {
        now += Span::from_millis(u64::from(piece[0]) * 20);
        if let Ok(message) = decode(&signed(piece, &network), &network) {
            assert_eq!(encode(&message, &network), signed(piece, &network));
            gateway.handle(&message, sender(&message), now, &mut out);
            client.handle(&message, now, &mut sent);
        }
        // The messages of each machine are delivered to the other side.
        for message in std::mem::take(&mut sent) {
            gateway.handle(&message, NodeId(1), now, &mut out);
        }
        for outgoing in std::mem::take(&mut out) {
            client.handle(&outgoing.message, now, &mut sent);
        }
        gateway.poll(now, &mut out);
        client.poll(now, &mut sent);
        assert!(gateway.granted() <= 1_000_000);
        assert!(gateway.clients() <= 1, "nobody comes in without an invitation");
        if let Some(next) = client.next_timeout() {
            assert!(now < next, "a timer that does not move");
        }
    }
});
