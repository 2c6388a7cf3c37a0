//! `leasehold serve`: parse, bind, run.

use leasehold_blob::AzureStore;
use leasehold_server::{BackendPair, Config, Edges, Service, StartError, banner, bind, init_telemetry};
use serde_json::json;

use crate::{
    cli::ServeArgs,
    descriptors, environment,
    error::CliError,
    output::{Output, path_text},
    signals,
};

/// Runs a replica until it is told to go. `Ok`: everything that it had acknowledged is in the store.
pub(crate) async fn serve(args: ServeArgs, output: Output) -> Result<(), CliError> {
    // First, so that whoever asks early is heard.
    let mut shutdown = signals::shutdowns()?;
    let config = configuration(args, environment::variables())?;
    init_telemetry(&config.log).map_err(StartError::from)?;
    if let Some(said) = descriptors::too_few(descriptors::raise(), &config) {
        tracing::warn!("{said}: {}", descriptors::NEXT);
    }
    let service = tokio::select! {
        service = Service::build(config) => service?,
        // Nothing was opened yet: a store may be away, and is being waited for.
        Some(_) = shutdown.recv() => return Ok(()),
    };
    let listeners = bind(service.config()).await?;
    let addr = listeners
        .clients
        .local_addr()
        .map_err(|source| StartError::Listen { listen: service.config().listen_addr(), source })?;
    let (config, replica) = (service.config(), service.replica());
    let (leases, images) = places(config)?;
    let address = format!("{}://{addr}", config.tls.scheme());
    let document = json!({
        "address": address,
        "replica": replica,
        "data_dir": path_text(&config.data_dir),
        "leases": leases,
        "images": images,
    });
    output.show(&document, |out| {
        if config.dev {
            out.write_all(banner(config, replica, addr).as_bytes())
        } else {
            writeln!(out, "replica {replica} listens on {address}, leases in {leases}, images in {images}")
        }
    })?;
    Ok(service.run(listeners, shutdown).await?)
}

/// Where leases and images are, without a secret.
fn places(config: &Config) -> Result<(String, String), CliError> {
    Ok(match config.pair().map_err(StartError::from)? {
        BackendPair::Embedded => (path_text(&config.leases_path()), path_text(&config.store_dir())),
        BackendPair::Cloud { postgres, azure } => {
            let options = postgres.options().map_err(StartError::from)?;
            let images = AzureStore::connect(azure.options(&Edges::system()).map_err(StartError::from)?)?;
            (format!("{} (schema {})", options.place(), options.schema), images.place())
        }
    })
}

/// The command line before the environment before the file before the defaults.
fn configuration(
    args: ServeArgs,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<Config, StartError> {
    let ServeArgs { dev, config: file, data_dir, listen, replica } = args;
    // Checked with the rest, and so given the same way.
    let listen = listen.map(|listen| ("LEASEHOLD_LISTEN".to_owned(), listen.to_string()));
    let mut config = Config::load(file.as_deref(), environment.chain(listen))?;
    config.dev = dev;
    if let Some(data_dir) = data_dir {
        config.data_dir = data_dir;
    }
    if replica.is_some() {
        config.replica = replica;
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use leasehold_types::ErrorCode;

    use super::*;

    fn variable(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn the_command_line_goes_before_the_environment() {
        let args = ServeArgs {
            dev: true,
            data_dir: Some("/tmp/cli".into()),
            listen: Some("127.0.0.1:1".parse().unwrap()),
            replica: Some("cli".parse().unwrap()),
            ..ServeArgs::default()
        };
        let environment = [
            variable("LEASEHOLD_LISTEN", "0.0.0.0:2"),
            variable("LEASEHOLD_DATA_DIR", "/tmp/env"),
            variable("LEASEHOLD_REPLICA", "env"),
            variable("LEASEHOLD_TTL", "3s"),
            variable("LEASEHOLD_URL", "http://127.0.0.1:7400"),
        ];
        let config = configuration(args, environment.into_iter()).unwrap();
        assert_eq!(config.listen.unwrap().port(), 1);
        assert_eq!(config.data_dir, std::path::Path::new("/tmp/cli"));
        assert_eq!(config.replica.unwrap().as_str(), "cli");
        assert_eq!(config.ttl.as_secs(), 3);
        assert!(config.dev);
    }

    #[test]
    fn an_address_that_others_reach_is_refused() {
        let args =
            ServeArgs { dev: true, listen: Some("0.0.0.0:1".parse().unwrap()), ..ServeArgs::default() };
        let error = configuration(args, std::iter::empty()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidConfiguration);
        assert!(error.to_string().contains("0.0.0.0:1"), "{error}");
    }
}
