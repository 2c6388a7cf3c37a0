//! From the command line to its verb, and from its end to the process's.

use std::{future::Future, process::ExitCode, time::Duration};

use crate::{
    cli::{Cli, Command},
    doctor,
    error::CliError,
    exit::Exit,
    migrate,
    output::Output,
    probe, salvage, serve, signals, snapshot, tenant, token,
};

/// How long work that cannot be stopped, such as a statement under way, may keep a process that has otherwise ended.
const LEFT_BEHIND_MAX: Duration = Duration::from_secs(1);

/// Runs the verb to its end.
pub(crate) fn run(cli: Cli) -> ExitCode {
    let output = Output::new(cli.json);
    let ended = match tokio::runtime::Runtime::new() {
        Ok(runtime) => {
            let ended = runtime.block_on(perform(cli.command, output));
            runtime.shutdown_timeout(LEFT_BEHIND_MAX);
            ended
        }
        Err(source) => Err(CliError::Process { action: "start the runtime", source }),
    };
    let exit = ended.unwrap_or_else(|error| {
        output.failed(&error);
        error.exit()
    });
    exit.into()
}

async fn perform(command: Command, output: Output) -> Result<Exit, CliError> {
    match command {
        // It has its own way to go.
        Command::Serve(args) => serve::serve(args, output).await.map(|()| Exit::Done),
        // It has something to take away first.
        Command::Doctor(args) => Box::pin(doctor::perform(args, output)).await,
        Command::Migrate(args) => or_interrupted(migrate::migrate(args, output)).await,
        Command::Probe(args) => or_interrupted(probe::probe(args, output)).await,
        Command::Tenant(args) => or_interrupted(tenant::perform(args, output)).await,
        Command::Token(args) => or_interrupted(token::perform(args, output)).await,
        Command::Snapshot(args) => or_interrupted(snapshot::perform(args, output)).await,
        Command::Salvage(args) => or_interrupted(salvage::perform(args, output)).await,
    }
}

/// The verb is dropped where it is when somebody interrupts it, so that it removes what it had begun to write.
async fn or_interrupted(verb: impl Future<Output = Result<Exit, CliError>>) -> Result<Exit, CliError> {
    tokio::select! {
        biased;
        // First, so that signals are heard before anything is begun.
        asked = signals::interrupted() => asked.map(|()| Exit::Interrupted),
        ended = verb => ended,
    }
}
