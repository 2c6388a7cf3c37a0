//! Each verb to its file.

use crate::{
    cli::{SalvageArgs, SalvageVerb},
    data_dir::DataDir,
    error::CliError,
    exit::Exit,
    output::Output,
    salvage::{export, list},
};

pub(crate) async fn perform(args: SalvageArgs, output: Output) -> Result<Exit, CliError> {
    let data_dir = DataDir::open(&args.data_dir)?;
    let replica = args.replica.as_ref();
    match args.verb {
        SalvageVerb::List(args) => list::list(&data_dir, replica, &args, output)?,
        SalvageVerb::Export(args) => export::export(&data_dir, replica, args, output).await?,
    }
    Ok(Exit::Done)
}
