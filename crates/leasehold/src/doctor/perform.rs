//! The verb.

use leasehold_server::{BackendPair, Config, ConfigError, Edges, StartError};

use super::{gather::Gathering, judge, report::Report};
use crate::{cli::DoctorArgs, environment, error::CliError, exit::Exit, output::Output, signals};

/// Looks at everything that the configuration names, and says what was found. `Ok` also where something is wrong: the exit tells.
pub(crate) async fn perform(args: DoctorArgs, output: Output) -> Result<Exit, CliError> {
    let DoctorArgs { config: file, data_dir, strict, check_config_only, limit } = args;
    let report = |findings, is_loaded| Report { findings, is_strict: strict, is_loaded };
    let mut config = match Config::load(file.as_deref(), environment::variables()) {
        Ok(config) => config,
        Err(error) => {
            let problem = CliError::from(StartError::from(error)).line();
            let findings = if check_config_only {
                judge::unloaded_configuration(&problem).to_vec()
            } else {
                judge::unloaded(&problem)
            };
            return report(findings, false).show(output);
        }
    };
    if let Some(data_dir) = data_dir {
        config.data_dir = data_dir;
    }
    let source = file.as_deref().map_or_else(String::new, |file| format!("{} and ", file.display()));
    let loaded = format!("{source}the environment: {}", named(&config).map_err(StartError::from)?);
    if check_config_only {
        let findings = judge::configuration(&loaded, &config.check_serving().into());
        return report(findings.to_vec(), true).show(output);
    }
    let gathering = Gathering::new(config, Edges::system(), limit)?;
    let facts = tokio::select! {
        biased;
        // First, so that signals are heard before anything is begun.
        asked = signals::interrupted() => {
            gathering.clean().await;
            return asked.map(|()| Exit::Interrupted);
        }
        facts = gathering.facts() => facts?,
    };
    report(judge::judge(&facts, &loaded), true).show(output)
}

/// The pair of backends that is looked at.
fn named(config: &Config) -> Result<&'static str, ConfigError> {
    Ok(match config.pair()? {
        BackendPair::Embedded => "leases in a file and a directory as store, on this machine",
        BackendPair::Cloud { .. } => "leases in Postgres, images in Azure Blob",
    })
}
