//! Around every route: whether its caller, and its tenant, may have one more.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use leasehold_types::{ErrorCode, LeaseKey};

use super::{CallerId, rate::TooMany};
use crate::{
    app::{App, AppState},
    bounds::Counted,
    forward::{is_marked, tenant_of},
    problem::Problem,
    starting::is_guarded,
};

/// Refuses what is one too many. Probes, metrics and the document are nobody's work. What another replica forwards was metered where it
/// came in; a mark that is forged gets its sender no further than that ([`crate::forward`]).
pub(crate) async fn meter(State(app): State<AppState>, request: Request, next: Next) -> Response {
    if !is_guarded(&request) || is_marked(request.headers()) {
        return next.run(request).await;
    }
    let caller = CallerId::of(&request);
    let (mut parts, body) = request.into_parts();
    let tenant = tenant_of(&mut parts).await;
    let request = Request::from_parts(parts, body);
    match enter(&app, &caller, tenant.as_ref()) {
        Ok(place) => {
            let answered = next.run(request).await;
            drop(place);
            answered
        }
        Err(problem) => {
            app.metrics.refused(problem.code());
            problem.into_response()
        }
    }
}

/// The caller's place among the requests at work, where neither it nor the tenant has had too many.
fn enter(app: &App, caller: &CallerId, tenant: Option<&LeaseKey>) -> Result<Counted<CallerId>, Problem> {
    let metering = &app.metering;
    let limits = &app.config.limits;
    // The caller first: whoever names one tenant after the other has used up its own rate before it is anybody else's.
    let rate = |spent: TooMany, per_second: u32, whose: &str| match spent {
        TooMany::Spent(wait) => Problem::new(
            ErrorCode::RateLimited,
            format!("more than {per_second} requests a second for {whose}"),
        )
        .after(wait),
        TooMany::Keys => Problem::overloaded("more callers and tenants at the same time than are counted"),
    };
    metering
        .per_caller
        .check(caller)
        .map_err(|spent| rate(spent, limits.rate_per_caller, &caller.to_string()))?;
    if let Some(key) = tenant {
        metering
            .per_tenant
            .check(key)
            .map_err(|spent| rate(spent, limits.rate_per_tenant, &key.to_string()).of(key))?;
    }
    metering.in_flight.try_enter(caller).map_err(|_| {
        Problem::overloaded(format!("{} requests are at work for {caller}", limits.in_flight_per_caller_max))
    })
}
