//! Each verb to its file.

use crate::{
    cli::{TenantArgs, TenantVerb},
    client::Client,
    error::CliError,
    exit::Exit,
    output::Output,
    tenant::{export, forget, hold_still, list, move_away, snapshot, status},
};

pub(crate) async fn perform(args: TenantArgs, output: Output) -> Result<Exit, CliError> {
    let client = Client::new(args.endpoint, args.timeout, args.ca_file.as_deref())?;
    let client = client.with_token_of(args.token_file.as_deref())?;
    match args.verb {
        TenantVerb::Status(tenant) => status::status(&client, &tenant.key, output).await,
        TenantVerb::List(args) => list::list(&client, &args, output).await,
        TenantVerb::Snapshot(tenant) => snapshot::snapshot(&client, &tenant.key, output).await,
        TenantVerb::Handoff(args) => move_away::handoff(&client, &args, output).await,
        TenantVerb::Abandon(tenant) => move_away::abandon(&client, &tenant.key, output).await,
        TenantVerb::Pause(tenant) => hold_still::pause(&client, &tenant.key, output).await,
        TenantVerb::Resume(tenant) => hold_still::resume(&client, &tenant.key, output).await,
        TenantVerb::Forget(args) => forget::forget(&client, &args, output).await,
        TenantVerb::Export(args) => export::export(&client, &args, output).await,
    }?;
    Ok(Exit::Done)
}
