//! Which requests open a tenant that nobody has open: those go where it belongs, and no others.

use axum::http::Method;

/// What a request does about a tenant that nobody has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opens {
    /// It tells or changes what stands in the row or in the store: any replica does that.
    Nothing,
    /// It opens one that is there.
    Existing,
    /// It creates one that nobody ever had.
    Unknown,
    /// It creates, a forgotten one too.
    Any,
}

impl Opens {
    /// What a request does, by its method and what comes after `{tenant}` in its route. `None`: a route that is not known here.
    pub(crate) fn of(method: &Method, route: &str) -> Option<Self> {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        Some(match (route, method) {
            ("", _) if reads => Self::Nothing,
            ("", &Method::PUT) => Self::Any,
            ("", &Method::DELETE) | ("/handoff" | "/abandon" | "/pause" | "/resume", &Method::POST) => {
                Self::Nothing
            }
            ("/events" | "/export", _) if reads => Self::Existing,
            ("/query" | "/snapshot", &Method::POST) => Self::Existing,
            ("/events" | "/execute", &Method::POST) | ("/import", &Method::PUT) => Self::Unknown,
            _ => return None,
        })
    }

    /// Whether the request opens a tenant that stands like this in the lease store.
    pub(crate) const fn opens(self, is_known: bool, is_forgotten: bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::Existing => is_known && !is_forgotten,
            Self::Unknown => !is_forgotten,
            Self::Any => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_route_about_a_tenant_is_known() {
        let document: Value = serde_json::from_str(&crate::openapi_json()).unwrap();
        let mut known = 0;
        for (route, item) in document["paths"].as_object().unwrap() {
            let Some((_, rest)) = route.rsplit_once("{tenant}") else { continue };
            for method in item.as_object().unwrap().keys() {
                let method: Method = method.to_ascii_uppercase().parse().unwrap();
                assert!(Opens::of(&method, rest).is_some(), "{method} {route}");
                known += 1;
            }
        }
        assert!(known >= 14);
        assert_eq!(Opens::of(&Method::HEAD, "/events"), Some(Opens::Existing));
        assert_eq!(Opens::of(&Method::POST, "/nothing"), None);
    }

    #[test]
    fn reading_opens_no_tenant_that_is_not_there() {
        assert!(!Opens::Existing.opens(false, false) && !Opens::Existing.opens(true, true));
        assert!(Opens::Existing.opens(true, false));
        assert!(Opens::Unknown.opens(false, false) && !Opens::Unknown.opens(true, true));
        assert!(Opens::Any.opens(true, true) && !Opens::Nothing.opens(true, false));
    }
}
