//! `leasehold token create`.

use leasehold_lease::{NewToken, TokenAdded, TokenStore};
use leasehold_types::{ApiToken, Entropy, TokenId};
use serde_json::json;

use super::audit::Operator;
use crate::{
    cli::TokenCreate,
    error::CliError,
    output::{self, Output},
};

pub(super) async fn create(
    store: &dyn TokenStore,
    entropy: &Entropy,
    args: TokenCreate,
    operator: &Operator,
    output: Output,
) -> Result<(), CliError> {
    let TokenCreate { name, orgs, scopes, expires_in } = args;
    if name.as_str().parse::<TokenId>().is_ok() {
        return Err(CliError::NameLikeAnId { name });
    }
    let token = ApiToken::mint(entropy);
    let new = NewToken {
        id: token.id().clone(),
        hash: token.hash(),
        name: name.clone(),
        organizations: orgs.clone(),
        scopes,
        good_for: expires_in,
    };
    let expires_at = match store.add_token(&new).await? {
        TokenAdded::Added(expires_at) => expires_at,
        TokenAdded::NameIsFull => return Err(CliError::TwoTokens { name }),
        TokenAdded::StoreIsFull => return Err(CliError::TooManyTokens),
    };
    operator.created(token.id(), &name);
    let document = json!({
        "token": token.reveal(), "id": token.id(), "name": name, "organizations": orgs.to_string(),
        "scopes": scopes, "expires_at": expires_at,
    });
    output.show(&document, |out| writeln!(out, "{}", token.reveal()))?;
    output::note(&format!(
        "token {} of {name}: {scopes} in {orgs}, until {expires_at}; it is not shown again",
        token.id()
    ));
    Ok(())
}
