//! What a caller may do, and in which organizations.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{IdError, OrgSlug};

/// One right. None of them implies another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Scope {
    /// Status, events, queries, exports, listings.
    Read = 1,
    /// Creating tenants and appending events.
    Append = 1 << 1,
    /// SQL that writes.
    Sql = 1 << 2,
    /// Snapshots, handoffs, abandoning, pausing; looking at the fleet.
    Operate = 1 << 3,
    /// Forgetting tenants.
    Forget = 1 << 4,
    /// Taking replicas out of the fleet.
    Admin = 1 << 5,
}

impl Scope {
    /// Every scope, in the order of the documentation.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Append, Self::Sql, Self::Operate, Self::Forget, Self::Admin];

    /// The scope as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Append => "append",
            Self::Sql => "sql",
            Self::Operate => "operate",
            Self::Forget => "forget",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no scopes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("scopes are one or more of read, append, sql, operate, forget and admin")]
pub struct ScopeError;

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or(ScopeError)
    }
}

/// A set of scopes, written with a space between two of them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scopes(u8);

impl Scopes {
    /// No scope.
    pub const NONE: Self = Self(0);
    /// Every scope.
    pub const ALL: Self = Self::of(&Scope::ALL);

    /// These scopes.
    #[must_use]
    pub const fn of(scopes: &[Scope]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < scopes.len() {
            bits |= scopes[at] as u8;
            at += 1;
        }
        Self(bits)
    }

    /// Whether each of `others` is one of these.
    #[must_use]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The scopes, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has(Self::of(&[*scope])))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.iter().enumerate() {
            write!(f, "{}{scope}", if index == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

impl FromStr for Scopes {
    type Err = ScopeError;

    /// The scopes of a text, with spaces or commas between them. None at all is an error.
    fn from_str(text: &str) -> Result<Self, ScopeError> {
        let words = text.split([' ', ',']).filter(|word| !word.is_empty());
        let scopes = words.map(str::parse).collect::<Result<Vec<Scope>, _>>()?;
        if scopes.is_empty() { Err(ScopeError) } else { Ok(Self::of(&scopes)) }
    }
}

impl TryFrom<String> for Scopes {
    type Error = ScopeError;

    fn try_from(text: String) -> Result<Self, ScopeError> {
        text.parse()
    }
}

impl From<Scopes> for String {
    fn from(scopes: Scopes) -> Self {
        scopes.to_string()
    }
}

/// The organizations that a caller reaches, written as `*` or with a space between two of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Organizations {
    /// Every one, those to come too.
    All,
    /// These.
    Only(BTreeSet<OrgSlug>),
}

/// A text that names no organizations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrganizationsError {
    /// One of them is no organization.
    #[error(transparent)]
    Id(#[from] IdError),
    /// There is none.
    #[error("no organization is named: name them, or write * for every one")]
    None,
    /// There are more than can be kept.
    #[error(
        "more than {} organizations are named: write * for every one, or make several tokens",
        Organizations::COUNT_MAX
    )]
    TooMany,
}

impl Organizations {
    /// The most that can be named.
    pub const COUNT_MAX: usize = 256;

    /// Whether this one is among them.
    #[must_use]
    pub fn has(&self, org: &OrgSlug) -> bool {
        match self {
            Self::All => true,
            Self::Only(orgs) => orgs.contains(org),
        }
    }
}

impl fmt::Display for Organizations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Only(orgs) => {
                for (index, org) in orgs.iter().enumerate() {
                    write!(f, "{}{org}", if index == 0 { "" } else { " " })?;
                }
                Ok(())
            }
        }
    }
}

impl FromStr for Organizations {
    type Err = OrganizationsError;

    /// The organizations of a text, with spaces or commas between them.
    fn from_str(text: &str) -> Result<Self, OrganizationsError> {
        let words = text.split([' ', ',']).filter(|word| !word.is_empty());
        if words.clone().eq(["*"]) {
            return Ok(Self::All);
        }
        let orgs = words.map(str::parse).collect::<Result<BTreeSet<OrgSlug>, _>>()?;
        match orgs.len() {
            0 => Err(OrganizationsError::None),
            count if count > Self::COUNT_MAX => Err(OrganizationsError::TooMany),
            _ => Ok(Self::Only(orgs)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for scope in Scope::ALL {
            assert_eq!(scope.to_string().parse(), Ok(scope));
        }
        let scopes: Scopes = "forget,read append".parse().unwrap();
        assert_eq!(scopes.to_string(), "read append forget");
        assert_eq!(scopes.to_string().parse(), Ok(scopes));
        assert!(Scopes::ALL.has(scopes) && !scopes.has(Scopes::ALL) && scopes.has(Scopes::NONE));
        for text in ["", " ", "write", "read write", "Read", "*"] {
            assert_eq!(text.parse::<Scopes>(), Err(ScopeError), "{text}");
        }
    }

    #[test]
    fn organizations_are_read_as_they_are_written() {
        let some: Organizations = "beta, acme".parse().unwrap();
        assert_eq!(some.to_string(), "acme beta");
        assert_eq!(some.to_string().parse(), Ok(some.clone()));
        let (acme, other) = ("acme".parse().unwrap(), "other".parse().unwrap());
        assert!(some.has(&acme) && !some.has(&other) && Organizations::All.has(&other));
        assert_eq!("*".parse(), Ok(Organizations::All));
        let many: Vec<String> = (0..=Organizations::COUNT_MAX).map(|number| format!("o{number}")).collect();
        let many = many.join(" ");
        for text in ["", " , ", "Acme", "acme *", many.as_str()] {
            assert!(text.parse::<Organizations>().is_err(), "{text}");
        }
    }
}
