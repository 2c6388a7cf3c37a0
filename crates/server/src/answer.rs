//! Answers of JSON.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use leasehold_ledger::Held;
use serde::Serialize;

use crate::{connections, problem::Problem};

/// A body of JSON with a newline at its end, so that it reads well in a terminal.
#[derive(Debug)]
pub(crate) struct Answer<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        match line_of(&self.0) {
            Ok(line) => {
                let kind = HeaderValue::from_static("application/json");
                (StatusCode::OK, [(header::CONTENT_TYPE, kind)], line).into_response()
            }
            Err(error) => Problem::internal(format!("an answer is not JSON: {error}")).into_response(),
        }
    }
}

/// The same, with what it holds of the memory for answers until its last byte has gone.
#[derive(Debug)]
pub(crate) struct LargeAnswer<T>(pub(crate) T, pub(crate) Held);

impl<T: Serialize> IntoResponse for LargeAnswer<T> {
    fn into_response(self) -> Response {
        let Self(value, held) = self;
        Answer(value).into_response().map(|body| Body::new(connections::Held::new(body, held)))
    }
}

/// A value as one line of JSON.
pub(crate) fn line_of<T: Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
