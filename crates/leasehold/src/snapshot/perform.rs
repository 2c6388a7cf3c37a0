//! Each verb to its file.

use crate::{
    cli::{SnapshotArgs, SnapshotVerb},
    error::CliError,
    exit::Exit,
    output::Output,
    snapshot::{list, restore, store::Store, verify},
};

pub(crate) async fn perform(args: SnapshotArgs, output: Output) -> Result<Exit, CliError> {
    let store = Store::open(args.config.as_deref(), args.data_dir.as_deref())?;
    match args.verb {
        SnapshotVerb::List(args) => list::list(&store, &args, output).await.map(|()| Exit::Done),
        SnapshotVerb::Verify(args) => verify::verify(&store, &args, output).await,
        SnapshotVerb::Restore(args) => restore::restore(&store, &args, output).await.map(|()| Exit::Done),
    }
}
