//! Tokens over their lives: exchanged, revoked, and known while the database is away.

use leasehold_lease::{LeaseError, NewToken, TokenAdded, TokenRow, TokenStore};
use leasehold_server::{Edges, Service, StartError, Stores};
use leasehold_testkit::{CloudPair, Pair as _};
use leasehold_types::{ApiToken, TokenId};
use reqwest::{Method, StatusCode};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::known::{asking, known};
use crate::served::{Served, config_in, eventually};

const LIST: &str = "/v1/orgs/acme/tenants";

async fn status_of(served: &Served, token: &ApiToken) -> StatusCode {
    let request = served.request(Method::GET, LIST);
    served.send(request.header("authorization", format!("Bearer {}", token.reveal()))).await.status
}

async fn a_token_is_exchanged_without_a_request_that_fails(stores: Stores) {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config_in(dir.path());
    asking(&mut config);
    let tokens = Arc::clone(&stores.tokens);
    let first = known(tokens.as_ref(), "crm", "acme", "read").await;
    let served = Served::start_on(config, stores).await;
    assert_eq!(status_of(&served, &first).await, 200, "what is there at the start is known at once");

    let second = known(tokens.as_ref(), "crm", "acme", "read").await;
    eventually("the second is known", async || status_of(&served, &second).await == 200).await;
    assert_eq!(status_of(&served, &first).await, 200, "both are live");
    assert!(tokens.revoke_token(first.id()).await.unwrap());
    eventually("the first is not", async || status_of(&served, &first).await == 401).await;
    assert_eq!(status_of(&served, &second).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_exchanged_on_the_embedded_pair() {
    let dir = tempfile::tempdir().unwrap();
    let stores = Stores::embedded(&config_in(dir.path()), &Edges::system()).unwrap();
    a_token_is_exchanged_without_a_request_that_fails(stores).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_exchanged_on_the_cloud_pair() {
    let pair = CloudPair::real_time().await;
    let stores = Stores { leases: pair.leases(), tokens: pair.tokens(), blobs: pair.blobs() };
    a_token_is_exchanged_without_a_request_that_fails(stores).await;
}

/// Tokens in a database that can be away.
#[derive(Debug)]
struct Away {
    inner: Arc<dyn TokenStore>,
    is_away: AtomicBool,
}

#[async_trait::async_trait]
impl TokenStore for Away {
    async fn add_token(&self, token: &NewToken) -> Result<TokenAdded, LeaseError> {
        self.inner.add_token(token).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>, LeaseError> {
        if self.is_away.load(Ordering::Relaxed) {
            let (action, detail) = ("list the tokens".to_owned(), "away".to_owned());
            return Err(LeaseError::Unavailable { action, detail });
        }
        self.inner.tokens().await
    }

    async fn revoke_token(&self, id: &TokenId) -> Result<bool, LeaseError> {
        self.inner.revoke_token(id).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_is_away_the_last_tokens_count_and_no_start_begins_without_any() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config_in(dir.path());
    asking(&mut config);
    let stores = Stores::embedded(&config, &Edges::system()).unwrap();
    let token = known(stores.tokens.as_ref(), "crm", "acme", "read").await;
    let away = Arc::new(Away { inner: Arc::clone(&stores.tokens), is_away: AtomicBool::new(false) });
    let stores = Stores { tokens: Arc::clone(&away) as Arc<dyn TokenStore>, ..stores };
    let served = Served::start_on(config.clone(), stores.clone()).await;
    away.is_away.store(true, Ordering::Relaxed);
    stores.tokens.revoke_token(token.id()).await.unwrap();
    for _ in 0..10 {
        crate::served::pause(config.auth.refresh_every).await;
        assert_eq!(status_of(&served, &token).await, 200);
    }
    let refused = Service::build_with(config, Edges::system(), stores).await;
    assert!(matches!(refused, Err(StartError::Lease(_))), "{refused:?}");
    away.is_away.store(false, Ordering::Relaxed);
    eventually("it is revoked", async || status_of(&served, &token).await == 401).await;
}
