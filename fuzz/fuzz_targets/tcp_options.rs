//! Any bytes as a TCP options field: no panic, and the same options as a second, plain reading of RFC 9293 §3.1 finds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_core::wire::TcpOptions;

/// All options (kind and data) up to the end of the list, or to the first whose length cannot be right.
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

/// The data of the first option of this kind that has `N` bytes of it.
fn first<const N: usize>(options: &[(u8, &[u8])], kind: u8) -> Option<[u8; N]> {
    options.iter().filter(|option| option.0 == kind).find_map(|option| option.1.try_into().ok())
}

fuzz_target!(|data: &[u8]| {
    let field = &data[..data.len().min(40)];
    let options = list(field);
    let expected = TcpOptions {
        mss: first(&options, 2).map(u16::from_be_bytes),
        window_scale: first(&options, 3).map(u8::from_be_bytes),
        timestamps: first::<8>(&options, 8).map(u64::from_be_bytes).map(|both| ((both >> 32) as u32, both as u32)),
    };
    assert_eq!(TcpOptions::parse(field), expected);
});
