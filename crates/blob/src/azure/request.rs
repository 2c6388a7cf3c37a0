//! Every request that is made of the service.

macro_rules! requests {
    ($($(#[$meta:meta])* $request:ident => $name:literal,)*) => {
        /// What is asked of the service. Nothing is asked but one of these: whoever goes through all of them has missed none.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Request {
            $($(#[$meta])* $request,)*
        }

        impl Request {
            /// All of them by name.
            pub(super) const NAMES: &[&str] = &[$($name),*];

            pub(super) const fn name(self) -> &'static str {
                match self {
                    $(Self::$request => $name,)*
                }
            }
        }
    };
}

requests! {
    /// Makes the container.
    CreateContainer => "create_container",
    /// Sees whether the container lets us in.
    Reach => "reach",
    /// Reads what the container is set to.
    Settings => "settings",
    /// Looks for what the service keeps of a deleted object.
    ListKept => "list_kept",
    /// A page of a listing.
    List => "list",
    /// Deletes an object.
    Delete => "delete",
    /// Creates an object that fits into one request.
    Put => "put",
    /// Sends a block of one that does not.
    PutBlock => "put_block",
    /// Creates the object from its blocks.
    CommitBlocks => "commit_blocks",
    /// Looks whose object is there where one was to be created.
    Look => "look",
    /// The beginning of an object.
    Begin => "begin",
    /// How long the object is of which the beginning was read.
    Measure => "measure",
    /// What follows, a range at a time.
    Continue => "continue",
}
