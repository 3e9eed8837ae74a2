//! Any bytes as the options of a TCP header: no panic, and the same options as a second, simple parser of RFC 9293 §3.1
//! finds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_core::packet::{RateNotice, Timestamps};
use penstock_core::wire::TcpOptions;

/// Lists all options (kind and data) up to the end of the list, or to the first one with an invalid length.
fn list(field: &[u8]) -> Vec<(u8, &[u8])> {
    match field {
        [] | [0, ..] => Vec::new(),
        [1, rest @ ..] => list(rest),
        [kind, length, ..] if (2..=field.len()).contains(&usize::from(*length)) => {
            let (option, rest) = field.split_at(usize::from(*length));
            [vec![(*kind, &option[2..])], list(rest)].concat()
        }
        _ => Vec::new(),
    }
}

/// Returns the data of the first option of this kind which has `N` bytes of data.
fn first<const N: usize>(options: &[(u8, &[u8])], kind: u8) -> Option<[u8; N]> {
    options.iter().filter(|option| option.0 == kind).find_map(|option| option.1.try_into().ok())
}

/// Returns the first rate whose round trip time is above 0.
fn rate(options: &[(u8, &[u8])]) -> Option<RateNotice> {
    let told = options.iter().filter(|option| option.0 == 253 && option.1.len() == 4);
    told.filter_map(|option| RateNotice::from_bytes(option.1.try_into().ok()?)).next()
}

fuzz_target!(|data: &[u8]| {
    let field = &data[..data.len().min(40)];
    let options = list(field);
    let expected = TcpOptions {
        mss: first(&options, 2).map(u16::from_be_bytes),
        window_scale: first(&options, 3).map(u8::from_be_bytes),
        timestamps: first(&options, 8)
            .map(u64::from_be_bytes)
            .map(|both| Timestamps { val: (both >> 32) as u32, ecr: both as u32 }),
        rate: rate(&options),
        signed: options.iter().any(|option| [19, 29].contains(&option.0)),
    };
    assert_eq!(TcpOptions::parse(field), expected);
    assert_eq!(TcpOptions::are_signed(field), expected.signed);
    if let Some(rate) = expected.rate {
        let again = RateNotice::new(rate.cwnd(), rate.rtt());
        assert_eq!((again.cwnd(), again.rtt_ms()), (rate.cwnd(), rate.rtt_ms()), "what was told can be told again");
    }
});
