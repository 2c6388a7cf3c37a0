//! Who a request is from, once that is known.

use std::sync::Arc;

use leasehold_types::{LeaseKey, OrgSlug, Organizations, Scope, Scopes};

/// How a caller is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallerKind {
    /// Not at all: the replica asks nobody who they are (`auth.mode` is `none` or `none-acknowledged`).
    Anonymous,
    /// A person or an agent, by a JWT.
    Person,
    /// A service, by an API token.
    Service,
    /// A replica of this fleet, by the peer secret, on its own behalf.
    Replica,
}

impl CallerKind {
    pub(crate) const ALL: [Self; 4] = [Self::Anonymous, Self::Person, Self::Service, Self::Replica];

    /// The kind as audit events and forwarded requests name it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Person => "person",
            Self::Service => "service",
            Self::Replica => "replica",
        }
    }
}

/// The tenants that a caller reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// One: a person's own, or the one about which another replica's caller was judged already.
    Tenant(LeaseKey),
    /// All of these organizations.
    Organizations(Organizations),
}

/// A caller that is known, or whom nobody asked. It is an extension of every request that was let through, as `Arc<Caller>`, but of what is open to anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// How it is known.
    pub(crate) kind: CallerKind,
    /// Its name, as logs may show it: a service's by its token, a person's by the keyed id of (issuer, subject), a replica's id.
    pub(crate) name: Arc<str>,
    /// What it may do.
    pub(crate) scopes: Scopes,
    /// Where.
    pub(crate) reach: Reach,
}

/// What a person may do with the tenant that is their own. Moving it between replicas is the operators' business.
pub(super) const OF_A_PERSON: Scopes = Scopes::of(&[Scope::Read, Scope::Append, Scope::Sql, Scope::Forget]);

impl Caller {
    /// Whoever calls a replica that asks nobody.
    pub(crate) fn anonymous() -> Self {
        Self {
            kind: CallerKind::Anonymous,
            name: "anonymous".into(),
            scopes: Scopes::ALL,
            reach: Reach::Organizations(Organizations::All),
        }
    }

    /// The person whose tenant this is.
    pub(crate) fn person(key: LeaseKey) -> Self {
        Self {
            kind: CallerKind::Person,
            name: key.tenant().as_str().into(),
            scopes: OF_A_PERSON,
            reach: Reach::Tenant(key),
        }
    }

    /// A service by its token.
    pub(crate) fn service(name: &str, scopes: Scopes, organizations: Organizations) -> Self {
        Self {
            kind: CallerKind::Service,
            name: name.into(),
            scopes,
            reach: Reach::Organizations(organizations),
        }
    }

    /// Another replica.
    pub(crate) fn replica(name: &str) -> Self {
        Self {
            kind: CallerKind::Replica,
            name: name.into(),
            scopes: Scopes::ALL,
            reach: Reach::Organizations(Organizations::All),
        }
    }

    /// Whether it may do something to this tenant at all.
    pub(crate) fn reaches_tenant(&self, key: &LeaseKey) -> bool {
        match &self.reach {
            Reach::Tenant(own) => own == key,
            Reach::Organizations(organizations) => organizations.has(key.org()),
        }
    }

    /// Whether it may do something to this organization as a whole.
    pub(crate) fn reaches_org(&self, org: &OrgSlug) -> bool {
        match &self.reach {
            Reach::Tenant(_) => false,
            Reach::Organizations(organizations) => organizations.has(org),
        }
    }

    /// Whether it may do something to the fleet as a whole.
    pub(crate) fn reaches_fleet(&self) -> bool {
        self.reach == Reach::Organizations(Organizations::All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reaches_one_tenant_and_operates_nothing() {
        let key: LeaseKey = "acme/u-1".parse().unwrap();
        let person = Caller::person(key.clone());
        assert!(person.reaches_tenant(&key));
        assert!(!person.reaches_tenant(&"acme/u-2".parse().unwrap()));
        assert!(!person.reaches_org(key.org()) && !person.reaches_fleet());
        for scope in [Scope::Operate, Scope::Admin] {
            assert!(!person.scopes.has(Scopes::of(&[scope])));
        }
    }

    #[test]
    fn a_service_of_one_organization_reaches_no_other_and_not_the_fleet() {
        let service = Caller::service("crm", Scopes::ALL, "acme".parse().unwrap());
        assert!(service.reaches_tenant(&"acme/u-1".parse().unwrap()));
        assert!(!service.reaches_tenant(&"other/u-1".parse().unwrap()) && !service.reaches_fleet());
        assert!(Caller::service("ops", Scopes::ALL, Organizations::All).reaches_fleet());
    }
}
