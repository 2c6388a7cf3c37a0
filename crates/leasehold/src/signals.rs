//! The process's signals.

use leasehold_server::Shutdown;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use crate::error::CliError;

/// SIGTERM and SIGINT as the server's shutdown: the first one hands off, a second one abandons.
pub(crate) fn shutdowns() -> Result<mpsc::Receiver<Shutdown>, CliError> {
    let failed = |source| CliError::Process { action: "listen to signals", source };
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let (tell, told) = mpsc::channel(2);
    tokio::spawn(async move {
        for shutdown in [Shutdown::Graceful, Shutdown::Abandon] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if tell.send(shutdown).await.is_err() {
                return;
            }
        }
    });
    Ok(told)
}

/// Ends when somebody presses Ctrl-C or asks the process to go.
pub(crate) async fn interrupted() -> Result<(), CliError> {
    let failed = |source| CliError::Process { action: "listen to signals", source };
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
