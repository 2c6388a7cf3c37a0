//! Services that a store knows.

use std::time::Duration;

use leasehold_lease::{NewToken, TokenAdded, TokenStore};
use leasehold_server::{AuthMode, Config};
use leasehold_types::{ApiToken, Entropy};

/// Asks everybody who they are, and reads the tokens anew all the time.
pub(crate) fn asking(config: &mut Config) {
    config.auth.mode = AuthMode::Required;
    config.auth.refresh_every = Duration::from_millis(20);
    // What stores are asked is what callers ask them.
    config.snapshot.every = Duration::ZERO;
}

/// A token that is stored, and what its service shows.
pub(crate) async fn known(store: &dyn TokenStore, name: &str, orgs: &str, scopes: &str) -> ApiToken {
    let token = ApiToken::mint(&Entropy::system());
    let new = NewToken {
        id: token.id().clone(),
        hash: token.hash(),
        name: name.parse().unwrap(),
        organizations: orgs.parse().unwrap(),
        scopes: scopes.parse().unwrap(),
        good_for: Duration::from_secs(3_600),
    };
    let added = store.add_token(&new).await.unwrap();
    assert!(matches!(added, TokenAdded::Added(_)), "{added:?}");
    token
}
