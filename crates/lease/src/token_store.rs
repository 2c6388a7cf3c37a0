//! What is kept of API tokens, beside the leases.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use leasehold_types::{Organizations, Scopes, Timestamp, TokenHash, TokenId, TokenName};

use crate::LeaseError;

/// Tokens of one name that are live at the same time: one is exchanged for the other while services use either.
pub const TOKENS_PER_NAME_MAX: usize = 2;
/// Tokens that are live at the same time: every replica has all of them in memory.
pub const TOKENS_MAX: u32 = 2_000;

/// A token as it is stored. The token itself is known to whom it was shown, and to nobody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Its public part.
    pub id: TokenId,
    /// What is kept of all of it.
    pub hash: TokenHash,
    /// The service's name.
    pub name: TokenName,
    /// Where it reaches.
    pub organizations: Organizations,
    /// What it may do there.
    pub scopes: Scopes,
    /// How long it is good for, from the store's present.
    pub good_for: Duration,
}

/// What came of adding a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenAdded {
    /// It is there (by this call, or by an earlier one whose answer was lost), and ends then (calendar, the store's).
    Added(Timestamp),
    /// Two live tokens have this name already: one of them has to be revoked first.
    NameIsFull,
    /// There are [`TOKENS_MAX`] live tokens.
    StoreIsFull,
}

impl NewToken {
    /// What adding this one comes to beside these live ones, where nothing is to be stored: it is there already, or there is no room.
    pub(crate) fn beside(&self, live: &[TokenRow]) -> Option<TokenAdded> {
        let same = live.iter().find(|row| row.id == self.id).map(|row| TokenAdded::Added(row.expires_at));
        let of_name = live.iter().filter(|row| row.name == self.name).count();
        let no_name = (of_name >= TOKENS_PER_NAME_MAX).then_some(TokenAdded::NameIsFull);
        same.or(no_name).or((live.len() >= TOKENS_MAX as usize).then_some(TokenAdded::StoreIsFull))
    }
}

/// A live token's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Its public part.
    pub id: TokenId,
    /// The service's name.
    pub name: TokenName,
    /// What is kept of all of it.
    pub hash: TokenHash,
    /// Where it reaches.
    pub organizations: Organizations,
    /// What it may do there.
    pub scopes: Scopes,
    /// When it was made (calendar, the store's).
    pub created_at: Timestamp,
    /// When it ends (calendar, the store's).
    pub expires_at: Timestamp,
}

/// The API tokens, in the database of the leases (decision 0040).
///
/// What every backend keeps: a token that has ended or was revoked is not told any more; two of one name at the most are live; an error
/// leaves it open whether the call was executed, and repeating it with the same token is safe.
#[async_trait]
pub trait TokenStore: Send + Sync + fmt::Debug {
    /// Adds a token, unless two live ones have its name. What has ended makes room first.
    async fn add_token(&self, token: &NewToken) -> Result<TokenAdded, LeaseError>;

    /// Every live token in the order of the names, at most [`TOKENS_MAX`].
    async fn tokens(&self) -> Result<Vec<TokenRow>, LeaseError>;

    /// Takes a token away. `false`: there is none of this id.
    async fn revoke_token(&self, id: &TokenId) -> Result<bool, LeaseError>;
}
