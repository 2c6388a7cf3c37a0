//! What every store of API tokens does: [`TokenStore`]'s contract.

use std::time::Duration;

use leasehold_lease::{NewToken, TOKENS_PER_NAME_MAX, TokenAdded, TokenStore};
use leasehold_types::{ApiToken, Entropy, Organizations, Scope, Scopes};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn token(number: u64, name: &str, good_for: Duration) -> NewToken {
    let token = ApiToken::mint(&Entropy::seeded(number));
    NewToken {
        id: token.id().clone(),
        hash: token.hash(),
        name: name.parse().expect("a token's name"),
        organizations: "acme beta".parse().expect("organizations"),
        scopes: Scopes::of(&[Scope::Read, Scope::Forget]),
        good_for,
    }
}

/// All of the contract, over a fresh store and a second way into it.
///
/// # Panics
/// Where the store does otherwise.
pub async fn tokens_are_kept_two_of_a_name_until_they_end(store: &dyn TokenStore, another: &dyn TokenStore) {
    let add = async |token: &NewToken| store.add_token(token).await.expect("an answer");
    let ids = async || {
        let rows = another.tokens().await.expect("a listing");
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert!(ids().await.is_empty());

    // What is read is what was written.
    let first = token(1, "crm", DAY);
    let TokenAdded::Added(expires_at) = add(&first).await else { panic!("a first token is added") };
    let row = another.tokens().await.expect("a listing").pop().expect("a row");
    assert_eq!((&row.id, &row.hash, &row.name), (&first.id, &first.hash, &first.name));
    assert_eq!((&row.organizations, row.scopes), (&first.organizations, first.scopes));
    assert_eq!((row.expires_at, row.expires_at.since(row.created_at)), (expires_at, DAY));
    assert_eq!(add(&first).await, TokenAdded::Added(expires_at), "a repetition finds it");

    // Two of a name, so that one can be exchanged for the other.
    let second = NewToken { organizations: Organizations::All, ..token(2, "crm", DAY) };
    assert!(matches!(add(&second).await, TokenAdded::Added(_)));
    assert_eq!(add(&token(3, "crm", DAY)).await, TokenAdded::NameIsFull);
    assert!(matches!(add(&token(4, "billing", DAY)).await, TokenAdded::Added(_)));
    assert_eq!(ids().await.len(), TOKENS_PER_NAME_MAX + 1);
    let names: Vec<_> =
        another.tokens().await.expect("a listing").iter().map(|row| row.name.to_string()).collect();
    assert_eq!(names, ["billing", "crm", "crm"], "in the order of their names");
    assert!(store.revoke_token(&first.id).await.expect("an answer"));
    assert!(!another.revoke_token(&first.id).await.expect("an answer"), "it is gone");
    assert!(!ids().await.contains(&first.id));
    assert!(matches!(add(&token(3, "crm", DAY)).await, TokenAdded::Added(_)), "its place is free");

    // One that has ended is told no more, and keeps no place.
    for number in 10..14 {
        let ended = token(number, "passing", Duration::ZERO);
        assert!(matches!(add(&ended).await, TokenAdded::Added(_)));
        assert!(!ids().await.contains(&ended.id));
    }

    // Of racing ones as many are added as there is room for.
    let racers: Vec<_> = (20..28).map(|number| token(number, "race", DAY)).collect();
    let racing = racers.iter().enumerate().map(|(at, token)| {
        let way = if at % 2 == 0 { store } else { another };
        async move { way.add_token(token).await.expect("an answer") }
    });
    let added = futures::future::join_all(racing).await;
    let count = added.iter().filter(|added| matches!(added, TokenAdded::Added(_))).count();
    assert_eq!(count, TOKENS_PER_NAME_MAX, "{added:?}");
}
