//! The services' tokens, as they were read last.
//!
//! Every replica has all of them in memory and reads them anew every `auth.refresh_every`: so long a revocation may take to hold, and a new token to be known.
//! While the database is away the last ones count, each until it ends.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, PoisonError, RwLock},
};

use leasehold_lease::{LeaseError, TokenRow, TokenStore};
use leasehold_types::{ApiToken, Timestamp, TokenHash, TokenId};
use subtle::ConstantTimeEq as _;

use super::Caller;
use crate::app::App;

/// The tokens that are let in.
#[derive(Debug)]
pub(crate) struct KnownTokens {
    store: Arc<dyn TokenStore>,
    /// Written by [`keep_tokens`] alone.
    known: RwLock<Arc<HashMap<TokenId, Known>>>,
}

#[derive(Debug)]
struct Known {
    hash: TokenHash,
    expires_at: Timestamp,
    caller: Arc<Caller>,
}

impl KnownTokens {
    /// Those of `store`, read for the first time.
    pub(super) async fn read(store: Arc<dyn TokenStore>) -> Result<Self, LeaseError> {
        let known = known_of(store.tokens().await?);
        if known.is_empty() {
            tracing::warn!("no service is known yet: `leasehold token create` makes a token");
        }
        Ok(Self { store, known: RwLock::new(Arc::new(known)) })
    }

    /// Whose token this is, if it is one that is good at `now`. How long that takes tells nothing of what is stored.
    pub(super) fn caller_of(&self, token: &ApiToken, now: Timestamp) -> Option<Arc<Caller>> {
        let known = self.now();
        let found = known.get(token.id());
        // Compared even where there is nothing to compare it with.
        let expected = found.map_or(TokenHash::new([0; 32]), |known| known.hash);
        let is_same: bool = expected.as_bytes().ct_eq(token.hash().as_bytes()).into();
        found.filter(|known| is_same && now < known.expires_at).map(|known| Arc::clone(&known.caller))
    }

    /// Reads them anew, and notes who came and who went.
    pub(crate) async fn refresh(&self) -> Result<(), LeaseError> {
        let fresh = Arc::new(known_of(self.store.tokens().await?));
        let before = std::mem::replace(
            // What is written is one pointer.
            &mut *self.known.write().unwrap_or_else(PoisonError::into_inner),
            Arc::clone(&fresh),
        );
        let (came, went) = (not_in(&fresh, &before), not_in(&before, &fresh));
        for (action, changed) in [("token_known", came), ("token_gone", went)] {
            for (id, known) in changed {
                let (name, scopes) = (&known.caller.name, known.caller.scopes);
                tracing::info!(target: super::audit::TARGET, action, token = %id, %name, %scopes, "audit");
            }
        }
        Ok(())
    }

    fn now(&self) -> Arc<HashMap<TokenId, Known>> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn not_in<'a>(
    some: &'a HashMap<TokenId, Known>,
    others: &'a HashMap<TokenId, Known>,
) -> impl Iterator<Item = (&'a TokenId, &'a Known)> {
    some.iter().filter(|(id, _)| !others.contains_key(*id))
}

fn known_of(rows: Vec<TokenRow>) -> HashMap<TokenId, Known> {
    let known = rows.into_iter().map(|row| {
        let caller = Arc::new(Caller::service(row.name.as_str(), row.scopes, row.organizations));
        (row.id, Known { hash: row.hash, expires_at: row.expires_at, caller })
    });
    known.collect()
}

/// Keeps the tokens fresh until it is dropped.
pub(crate) async fn keep_tokens(app: Arc<App>) -> Infallible {
    let Some(tokens) = app.knowledge.tokens() else { return std::future::pending().await };
    loop {
        app.timer.sleep(app.entropy.jittered(app.config.auth.refresh_every)).await;
        if let Err(error) = tokens.refresh().await {
            tracing::warn!(%error, "the tokens could not be read anew: those of the last time count");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use leasehold_lease::{NewToken, TokenAdded};
    use leasehold_types::{Entropy, Organizations, Scopes};

    use super::*;

    /// Rows that a test sets; `None`: the database is away.
    #[derive(Debug, Default)]
    struct Rows(Mutex<Option<Vec<TokenRow>>>);

    #[async_trait::async_trait]
    impl TokenStore for Rows {
        async fn add_token(&self, _: &NewToken) -> Result<TokenAdded, LeaseError> {
            unreachable!("a replica adds none")
        }

        async fn tokens(&self) -> Result<Vec<TokenRow>, LeaseError> {
            let away = || LeaseError::Unavailable { action: "list".to_owned(), detail: "away".to_owned() };
            self.0.lock().unwrap().clone().ok_or_else(away)
        }

        async fn revoke_token(&self, _: &TokenId) -> Result<bool, LeaseError> {
            unreachable!("a replica revokes none")
        }
    }

    const END: Timestamp = Timestamp::from_millis(1_000);

    fn row(token: &ApiToken) -> TokenRow {
        TokenRow {
            id: token.id().clone(),
            name: "crm".parse().unwrap(),
            hash: token.hash(),
            organizations: Organizations::All,
            scopes: Scopes::ALL,
            created_at: Timestamp::from_millis(0),
            expires_at: END,
        }
    }

    #[tokio::test]
    async fn a_token_is_good_until_it_ends_or_is_read_no_more() {
        let [old, new] = [1, 2].map(|seed| ApiToken::mint(&Entropy::seeded(seed)));
        let store = Arc::new(Rows(Mutex::new(Some(vec![row(&old), row(&new)]))));
        let known = KnownTokens::read(Arc::clone(&store) as Arc<dyn TokenStore>).await.unwrap();
        let now = Timestamp::from_millis(999);
        for token in [&old, &new] {
            assert_eq!(&*known.caller_of(token, now).unwrap().name, "crm", "two at once, under one name");
        }
        assert!(known.caller_of(&old, END).is_none(), "it has ended");
        let forged: ApiToken = format!("lh_{}_{}", old.id(), "0".repeat(64)).parse().unwrap();
        assert!(known.caller_of(&forged, now).is_none(), "the id alone opens nothing");
        let unknown = ApiToken::mint(&Entropy::seeded(3));
        assert!(known.caller_of(&unknown, now).is_none());

        *store.0.lock().unwrap() = None;
        assert!(known.refresh().await.is_err());
        assert!(known.caller_of(&old, now).is_some(), "while the database is away the last ones count");
        assert!(known.caller_of(&old, END).is_none(), "and end all the same");

        *store.0.lock().unwrap() = Some(vec![row(&new)]);
        known.refresh().await.unwrap();
        assert!(known.caller_of(&old, now).is_none(), "revoked");
        assert!(known.caller_of(&new, now).is_some());
    }
}
