//! Any bytes as a request at the control socket, and as an answer: no panic, and a request that was read is written as the
//! same request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_appliance::socket::message::{Refusal, Request, answer_line, parse_answer};

fuzz_target!(|data: &[u8]| {
    match Request::parse(data) {
        Ok(request) => assert_eq!(Request::parse(request.line().as_bytes()), Ok(request)),
        Err(refusal) => {
            let line = answer_line(&Err(refusal.clone()));
            assert_eq!(line.find('\n'), Some(line.len() - 1), "an answer is one line");
            assert_eq!(parse_answer(line.as_bytes()), Err::<_, Refusal>(refusal));
        }
    }
    let _ = parse_answer(data);
});
