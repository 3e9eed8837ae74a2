//! Writes the man pages and completions of the appliances: cargo run --example pages -- DIRECTORY

use clap::{Command, CommandFactory as _};
use clap_complete::{Shell, generate_to};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

/// Every appliance with the options that it parses.
fn programs() -> [Command; 3] {
    use {penstock_budgets::cli as hosts, penstock_emulator::cli as emulator, penstock_gateway::cli as gateway};
    [emulator::Options::command(), gateway::Options::command(), hosts::Options::command()]
}

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: pages DIRECTORY");
        return ExitCode::from(2);
    };
    match programs().into_iter().try_for_each(|program| write(program, &directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}

/// Writes the pages of a program and of its subcommands to `man1`, its completions to a folder for each shell.
fn write(mut program: Command, directory: &Path) -> io::Result<()> {
    let name = program.get_name().to_owned();
    for (shell, folder) in [(Shell::Bash, "bash"), (Shell::Zsh, "zsh"), (Shell::Fish, "fish")] {
        let folder = directory.join(folder);
        fs::create_dir_all(&folder)?;
        generate_to(shell, &mut program, &name, folder)?;
    }
    let pages = directory.join("man1");
    fs::create_dir_all(&pages)?;
    clap_mangen::generate_to(program, pages)
}
