//! Around every route: a request's part of the budget, from before its body is read until its answer has gone.

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::Share;
use crate::{app::AppState, connections::Held, starting::is_guarded};

/// Refuses a request for which there is no memory, before anything of it is executed. Probes, metrics and the document are answered always.
pub(crate) async fn account(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    if !is_guarded(&request) {
        return next.run(request).await;
    }
    let share = match Share::begin(&app.memory) {
        Ok(share) => share,
        Err(problem) => {
            app.metrics.refused(problem.code());
            return problem.into_response();
        }
    };
    request.extensions_mut().insert(share.clone());
    let answered = next.run(request).await;
    answered.map(|body| Body::new(Held::new(body, share)))
}
