//! `cargo xtask`: see `cargo xtask --help`.

use std::{error::Error, process::ExitCode};

use clap::Parser;

fn main() -> ExitCode {
    match xtask::run(&xtask::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("  because: {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}
