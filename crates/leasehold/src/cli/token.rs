//! `leasehold token ...`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use leasehold_types::{Organizations, Scopes, TokenName};

const EXAMPLES: &str = "\
Examples:
  leasehold token create crm --orgs acme --scopes read,append --config leasehold.toml
  leasehold token create backup --orgs '*' --scopes read --expires-in 30d > backup.token
  leasehold token list --json
  leasehold token revoke crm                      every token of that name
  leasehold token revoke 4f0c2a9be1d37756         one, by its id

The token is shown once and stored as a hash. Two of one name are live at the same time at the most: to exchange one, create the next,
give it to the service, revoke the first by its id. Replicas learn of a change within `auth.refresh_every` (5s).

Who made or revoked which one is logged on the target leasehold_audit, on the standard error stream: --by, LEASEHOLD_OPERATOR, else the
user of the process. Keep that where it is looked for later.

On Postgres it needs the role that owns the schema, as `leasehold migrate` does:
  LEASEHOLD_POSTGRES__URL_FILE=/run/owner-url leasehold token list --config leasehold.toml";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TokenArgs {
    /// The replicas' configuration file (TOML): it says where tokens are kept
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG", global = true)]
    pub(crate) config: Option<PathBuf>,
    #[arg(
        long,
        value_name = "DIR",
        global = true,
        help = "The data directory of replicas that keep their leases in it [default: .leasehold] [env: LEASEHOLD_DATA_DIR]"
    )]
    pub(crate) data_dir: Option<PathBuf>,
    /// Who is to be written down as whoever makes or revokes a token [default: the user of this process]
    #[arg(long, value_name = "NAME", env = "LEASEHOLD_OPERATOR", value_parser = operator, global = true)]
    pub(crate) by: Option<String>,
    #[command(subcommand)]
    pub(crate) verb: TokenVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Make a token and print it, this once
    Create(TokenCreate),
    /// List the live tokens, none of which is shown
    List,
    /// Take tokens away
    Revoke(TokenRevoke),
}

#[derive(Debug, Args)]
pub(crate) struct TokenCreate {
    /// The service's name
    #[arg(value_name = "NAME")]
    pub(crate) name: TokenName,
    /// The organizations that it reaches, with commas between them; * for every one, and for the fleet
    #[arg(long, value_name = "ORGS")]
    pub(crate) orgs: Organizations,
    /// What it may do there: read, append, sql, operate, forget, admin, with commas between them
    #[arg(long, value_name = "SCOPES")]
    pub(crate) scopes: Scopes,
    /// How long it is good for
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = good_for)]
    pub(crate) expires_in: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct TokenRevoke {
    /// The name of its service, for every token of that name, or the id of one
    #[arg(value_name = "NAME|ID")]
    pub(crate) which: String,
}

/// The longest name of an operator.
const OPERATOR_LEN_MAX: usize = 128;

/// What stands in one line of a log and is no more than a name.
fn operator(text: &str) -> Result<String, String> {
    let is_name = !text.trim().is_empty() && !text.chars().any(char::is_control);
    if is_name && text.chars().count() <= OPERATOR_LEN_MAX {
        return Ok(text.trim().to_owned());
    }
    Err(format!("a name of {OPERATOR_LEN_MAX} characters or fewer, in one line"))
}

/// The longest that a token may be good for: two years, after which nobody remembers who has it.
const GOOD_FOR_MAX: Duration = Duration::from_secs(2 * 366 * 24 * 60 * 60);

fn good_for(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if time < Duration::from_secs(1) || time > GOOD_FOR_MAX {
        return Err("a second at the least, and two years at the most".to_owned());
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_a_name_in_one_line() {
        assert_eq!(operator(" ada@example.com "), Ok("ada@example.com".to_owned()));
        for text in ["", " ", "ada\nforged", "\u{1b}[2J", &"a".repeat(129)] {
            assert!(operator(text).is_err(), "{text:?}");
        }
    }
}
