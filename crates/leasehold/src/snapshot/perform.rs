//! Each verb to its file.

use crate::{
    cli::{SnapshotArgs, SnapshotVerb},
    data_dir::DataDir,
    error::CliError,
    exit::Exit,
    output::Output,
    snapshot::{list, restore, store::Store, verify},
};

pub(crate) async fn perform(args: SnapshotArgs, output: Output) -> Result<Exit, CliError> {
    let store = Store::open(&DataDir::open(&args.data_dir)?)?;
    match args.verb {
        SnapshotVerb::List(args) => list::list(&store, &args, output).await.map(|()| Exit::Done),
        SnapshotVerb::Verify(args) => verify::verify(&store, &args, output).await,
        SnapshotVerb::Restore(args) => restore::restore(&store, &args, output).await.map(|()| Exit::Done),
    }
}
