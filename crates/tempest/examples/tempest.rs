//! TEMPEST without Python, for profilers: arguments are `flag=value`, as `alg=drr flows=1000 n=10M measure=time`.

use penstock_tempest::{Plan, Request, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    match told(std::env::args().skip(1)) {
        Ok(report) => println!("{report}"),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn told(arguments: impl Iterator<Item = String>) -> Result<String, Box<dyn std::error::Error>> {
    let mut flags = serde_json::Map::new();
    for argument in arguments {
        let (flag, value) = argument.split_once('=').ok_or(format!("{argument:?}: must be flag=value"))?;
        flags.insert(flag.to_owned(), value.into());
    }
    let request: Request = serde_json::from_value(flags.into())?;
    Ok(serde_json::to_string(&run(&Plan::of(&request)?)?)?)
}
