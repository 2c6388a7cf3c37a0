//! Answers of JSON.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::problem::Problem;

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

/// A value as one line of JSON.
pub(crate) fn line_of<T: Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
