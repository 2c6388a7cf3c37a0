//! By what callers are known here.

use std::sync::Arc;

use axum::http::HeaderMap;
use leasehold_types::{DerivationKey, Timer, Timestamp};

use super::{Caller, credential::Credential, identity::Unknown, jwt::Issuers, tokens::KnownTokens};
use crate::{config::AuthMode, error::StartError, service::Stores};

/// What a replica judges credentials by: all of it is in memory, so that judging asks nobody.
#[derive(Debug)]
pub(crate) enum Knowledge {
    /// Nothing: nobody is asked who they are.
    Unasked(Arc<Caller>),
    /// This.
    Asked {
        /// The services' tokens, where they are let in.
        tokens: Option<KnownTokens>,
        /// Whose tokens of people are believed.
        issuers: Issuers,
    },
}

impl Knowledge {
    /// What `config` says, read for the first time: a replica that knows nobody yet does not begin to serve.
    pub(crate) async fn of(
        config: &crate::Config,
        stores: &Stores,
        derivation: &DerivationKey,
        timer: &dyn Timer,
    ) -> Result<Self, StartError> {
        let auth = &config.auth;
        if auth.mode != AuthMode::Required {
            return Ok(Self::Unasked(Arc::new(Caller::anonymous())));
        }
        let tokens =
            if auth.tokens { Some(KnownTokens::read(Arc::clone(&stores.tokens)).await?) } else { None };
        let issuers = Issuers::of(auth, derivation, timer).await?;
        Ok(Self::Asked { tokens, issuers })
    }

    /// Who shows these headers.
    pub(super) fn caller_of(&self, headers: &HeaderMap, now: Timestamp) -> Result<Arc<Caller>, Unknown> {
        let Self::Asked { tokens, issuers } = self else {
            let Self::Unasked(anybody) = self else { return Err(Unknown::Missing) };
            return Ok(Arc::clone(anybody));
        };
        match Credential::of(headers) {
            Credential::Missing => Err(Unknown::Missing),
            Credential::Unusable(why) => Err(Unknown::NotValid(why)),
            Credential::Token(token) => {
                let known = tokens.as_ref().and_then(|tokens| tokens.caller_of(&token, now));
                known.ok_or(Unknown::NotValid("the token is not valid"))
            }
            Credential::Jwt(token) => issuers.caller_of(token, now).map_err(Unknown::NotValid),
        }
    }

    /// The issuers, where anybody is asked.
    pub(crate) fn issuers(&self) -> Option<&Issuers> {
        match self {
            Self::Asked { issuers, .. } => Some(issuers),
            Self::Unasked(_) => None,
        }
    }

    /// The tokens, where they are let in.
    pub(crate) fn tokens(&self) -> Option<&KnownTokens> {
        match self {
            Self::Asked { tokens, .. } => tokens.as_ref(),
            Self::Unasked(_) => None,
        }
    }
}
