//! What `serve --dev` says first.

use std::net::SocketAddr;

use leasehold_types::ReplicaId;

use crate::{AuthMode, Config};

/// The banner of a replica that listens on `addr`: where it is, where its data lies, that nobody is asked who they are, and three
/// commands to try.
#[must_use]
pub fn banner(config: &Config, replica: &ReplicaId, addr: SocketAddr) -> String {
    let url = format!("{}://{addr}", config.tls.scheme());
    let data_dir = config.data_dir.display();
    let access = match config.auth.mode {
        AuthMode::Required => "by a token on each request (`leasehold token create`)",
        AuthMode::None | AuthMode::NoneAcknowledged => {
            "no authentication: whoever reaches this address can read, write and forget every tenant"
        }
    };
    format!(
        "\
Leasehold {version}, replica {replica}

  address   {url}
  data      {data_dir}
  access    {access}

Try it from another terminal:

  curl --json '{{\"kind\":\"note.added\",\"actor\":\"ada\",\"payload\":{{\"text\":\"hello\"}}}}' {url}/v1/orgs/acme/tenants/user-1/events
  curl {url}/v1/orgs/acme/tenants/user-1/events
  curl {url}/v1/orgs/acme/tenants/user-1

Ctrl-C hands every tenant off and ends.
",
        version = env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_where_it_is_and_what_to_try() {
        let config = Config::dev("/tmp/data", None).unwrap();
        let banner = banner(&config, &"dev-1".parse().unwrap(), "127.0.0.1:7403".parse().unwrap());
        assert_eq!(banner.lines().filter(|line| line.trim_start().starts_with("curl ")).count(), 3);
        for part in ["replica dev-1", "http://127.0.0.1:7403\n", "/tmp/data", "no authentication"] {
            assert!(banner.contains(part), "{part} in {banner}");
        }
    }
}
